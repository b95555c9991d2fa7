import { expect, it } from 'vitest';
import { markdownTree, safeHref } from './markdown';

it('keeps HTML as text, for the page never to make elements of it', () => {
  const tree = markdownTree('a <b>c</b>\n\n<script>alert(1)</script>');
  expect(tree.children.map((node) => node.type)).toEqual(['paragraph', 'html']);
});

it('knows tables, task lists and strikethrough', () => {
  const types = markdownTree('| a |\n|-|\n| b |\n\n- [x] done\n\n~~gone~~').children.map((node) => node.type);
  expect(types).toEqual(['table', 'list', 'paragraph']);
});

it('allows links to web sites and mail only', () => {
  expect(safeHref('https://example.org/a')).toBe('https://example.org/a');
  expect(safeHref('mailto:ada@example.org')).toBe('mailto:ada@example.org');
  expect(safeHref('/vision')).toBe('/vision');
  for (const url of ['javascript:alert(1)', ' JavaScript:alert(1)', 'data:text/html,x', 'java\nscript:alert(1)', 'vbscript:x', 'http://[']) expect(safeHref(url), url).toBeNull();
});
