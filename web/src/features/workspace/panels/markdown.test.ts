import { expect, it } from 'vitest';
import { definitionsOf, parseMarkdown, safeAddress } from './markdown';

it.each(['https://example.org/a?b', 'http://x', 'mailto:a@b.c', '/projects/a', '/'])('%s can be a link', (address) => {
  expect(safeAddress(address)).toBe(address);
});

it.each(['javascript:alert(1)', 'JaVaScRiPt:alert(1)', 'data:text/html,x', '//evil.example', '/\\evil.example', ' https://x', '', 'vbscript:x', 'https://', 'blob:x', '\u0001javascript:x'])(
  '“%s” is no link',
  (address) => {
    expect(safeAddress(address)).toBeNull();
  },
);

it('raw HTML is a node of its own, which is shown as text', () => {
  const { children } = parseMarkdown('<script>alert(1)</script>\n\na <b onclick=x>c</b>');
  expect(children.map(({ type }) => type)).toEqual(['html', 'paragraph']);
});

it('addresses of references are found by their names', () => {
  expect([...definitionsOf(parseMarkdown('[a][Docs]\n\n[docs]: https://example.org'))]).toEqual([['docs', 'https://example.org']]);
});
