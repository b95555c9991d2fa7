// Has the address of each link, image and frame made by `base/address.ts`, so that no component can forget it: the server may
// be below a path of another one. `<a href={x}>` becomes `<a href={address(x)}>`, and `{@html text}` likewise.

import { dirname, relative } from 'node:path';
import { parse } from 'svelte/compiler';

const FILE = decodeURIComponent(new URL('src/base/address.ts', import.meta.url).pathname);
export const ATTRIBUTES = ['href', 'src', 'poster'];

/** The source of a component with these addresses, each in its line. */
export function withOwnAddresses(content, filename) {
  const edits = [];
  const visit = (node) => {
    if (node === null || typeof node !== 'object') return;
    if (node.type === 'RegularElement') {
      for (const attribute of node.attributes) if (attribute.type === 'Attribute' && ATTRIBUTES.includes(attribute.name)) edits.push(...attributeEdits(attribute, content));
    }
    if (node.type === 'HtmlTag') edits.push([node.expression.start, node.expression.end, `ownAddresses.html(${textOf(node.expression, content)})`]);
    for (const [key, value] of Object.entries(node)) if (key !== 'metadata') (Array.isArray(value) ? value : [value]).forEach(visit);
  };
  const root = parse(content, { modern: true, filename });
  visit(root.fragment);
  if (edits.length === 0) return content;
  const path = relative(dirname(filename), FILE).replace(/\.ts$/, '');
  const line = `import * as ownAddresses from '${path.startsWith('.') ? path : `./${path}`}';`;
  const script = root.instance ?? root.module;
  edits.push(script ? [script.content.start, script.content.start, line] : [0, 0, `<script lang="ts">${line}</script>`]);
  return edits.sort(([a], [b]) => b - a).reduce((text, [start, end, by]) => text.slice(0, start) + by + text.slice(end), content);
}

const textOf = ({ start, end }, content) => content.slice(start, end);

function attributeEdits({ name, value, start, end }, content) {
  if (value === true) return [];
  const parts = Array.isArray(value) ? value : [value];
  const [first] = parts;
  const text = parts.map((part) => (part.type === 'Text' ? part.data.replace(/[\\`$]/g, '\\$&') : `\${${textOf(part.expression, content)}}`)).join('');
  if (first.type === 'Text') {
    // Else another site, or a place in the page. Without a call: Svelte keeps the results of calls.
    return /^\/(?![/\\])/.test(first.data) ? [[start, end, `${name}={\`\${ownAddresses.BELOW}${text}\`}`]] : [];
  }
  return [[start, end, `${name}={ownAddresses.address(${parts.length === 1 ? textOf(first.expression, content) : `\`${text}\``})}`]];
}
