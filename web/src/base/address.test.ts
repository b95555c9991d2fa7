import { describe, expect, it } from 'vitest';
import { ATTRIBUTES, withOwnAddresses } from '../../ownAddresses.js';
import { address, html, pathIn, storageKey } from './address';

describe('addresses below a path of another server', () => {
  it.each([
    ['/', '/hub/'],
    ['/runs?q=a', '/hub/runs?q=a'],
    ['/api/v1/runs', '/hub/api/v1/runs'],
    ['//evil.example', '//evil.example'],
    ['/\\evil.example', '/\\evil.example'],
    ['https://other.example/', 'https://other.example/'],
    ['#part', '#part'],
    ['blob:x', 'blob:x'],
    ['', ''],
    [undefined, undefined],
  ])('%s', (path, expected) => expect(address(path, '/hub')).toBe(expected));

  it('are those of the server at the root', () => expect(address('/runs')).toBe('/runs'));

  it.each([
    ['/hub/', '/'],
    ['/hub/runs/a', '/runs/a'],
    ['/hubs/runs', null],
    ['/tree', null],
  ])('%s has a path of this server', (pathname, expected) => expect(pathIn(pathname, '/hub')).toBe(expected));

  it('have storage of their own', () => expect([storageKey('a'), storageKey('a', '/hub')]).toEqual(['a', 'a /hub']));

  it('are in the HTML that the server made', () => {
    const text = '<p><a rel="x" href="/vision">a</a> <img alt="<i> > src=/x" src="/api/v1/images/1"> <a href="//evil.example">b</a> href="/c"</p>';
    expect(html(text, '/hub')).toBe('<p><a rel="x" href="/hub/vision">a</a> <img alt="<i> > src=/x" src="/hub/api/v1/images/1"> <a href="//evil.example">b</a> href="/c"</p>');
    expect(html(text)).toBe(text);
  });
});

describe('attributes of components', () => {
  const changed = (markup: string): string => withOwnAddresses(`<script lang="ts">let x = '/';</script>\n${markup}`, '/web/src/base/A.svelte').split('\n')[1]!;

  it.each([
    ['<a href="/runs">a</a>', '<a href={`${ownAddresses.BELOW}/runs`}>a</a>'],
    ['<a href={x!}>a</a>', '<a href={ownAddresses.address(x!)}>a</a>'],
    ['{#if x}<a {href} class="b">a</a>{/if}', '{#if x}<a href={ownAddresses.address(href)} class="b">a</a>{/if}'],
    ['<img src="/p/{x}?s={1}" alt="" />', '<img src={`${ownAddresses.BELOW}/p/${x}?s=${1}`} alt="" />'],
    ['<a href="{x}?t=1">a</a>', '<a href={ownAddresses.address(`${x}?t=1`)}>a</a>'],
    ['{@html x}', '{@html ownAddresses.html(x)}'],
    ['<a href="#{x}">a</a>', '<a href="#{x}">a</a>'],
    ['<a href="https://other.example/{x}">a</a>', '<a href="https://other.example/{x}">a</a>'],
    ['<Link href="/runs" />', '<Link href="/runs" />'],
  ])('%s', (markup, expected) => expect(changed(markup)).toBe(expected));
});

/** What makes addresses for the browser, and the files that may use it. */
const MADE_ELSEWHERE: Record<string, { use: RegExp; allowed: RegExp }> = {
  'a request': { use: /(?<![.\w])fetch\(|XMLHttpRequest|EventSource\(|WebSocket\(|sendBeacon|importScripts|new Worker\(/g, allowed: /base\/address\.ts$/ },
  'another page': { use: /location\.(assign|replace)\(|location(\.href)?\s*=[^=]|window\.open\(/g, allowed: /base\/address\.ts$/ },
  'a step in the history': { use: /history\.(push|replace)State\(/g, allowed: /base\/route\.svelte\.ts$/ },
  'the path of the browser': { use: /location\.pathname|location\.(origin|host)\b/g, allowed: /(base\/(address|route\.svelte)|accounts\/passkeys)\.ts$/ },
  'an attribute that has no address': { use: /<(?:[a-z][a-z\d]*\s[^<>]*?\s(?:srcset|action|formaction|ping|xlink:href)=|object\s|svelte:element\s[^<>]*?\s(?:href|src|poster)=)/g, allowed: /^$/ },
  'an element in code': { use: /\.(href|src|poster)\s*=(?!=)(?! (copy|url|URL\.createObjectURL\(content\)|`data:image))/g, allowed: /^$/ },
};

describe('addresses are made in one place', () => {
  const sources = import.meta.glob<string>(['/src/**/*.{ts,svelte}', '!/src/**/*.test.ts'], { eager: true, query: '?raw', import: 'default' });

  it.each(Object.keys(MADE_ELSEWHERE))('%s', (kind) => {
    const { use, allowed } = MADE_ELSEWHERE[kind]!;
    const sourcesWithout = Object.entries(sources)
      .filter(([path]) => !allowed.test(path))
      .flatMap(([path, text]) => (text.match(use) ?? []).map((match) => `${path}: ${match.trim()}`));
    expect(sourcesWithout).toEqual([]);
  });

  it('whatever the attribute is called', () => expect(ATTRIBUTES).toEqual(['href', 'src', 'poster']));
});
