// Markdown of text panels as a tree, which the page shows element by element: no HTML is made of it, and raw HTML in it is
// text.

import type { Nodes, Root, RootContent } from 'mdast';
import { fromMarkdown } from 'mdast-util-from-markdown';
import { gfmFromMarkdown } from 'mdast-util-gfm';
import { gfm } from 'micromark-extension-gfm';
import { MAX_TEXT } from './layoutFile';

/** Deeper parts of a text are not shown: thousands of nested quotes would be too much for the browser. */
export const MAX_DEPTH = 20;

export const parseMarkdown = (text: string): Root => fromMarkdown(text.slice(0, MAX_TEXT), { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] });

export const childrenOf = (node: Nodes): RootContent[] => ('children' in node ? (node.children as RootContent[]) : []);

/** Addresses of the definitions of a text (`[name]: address`), by name. */
export const definitionsOf = (root: Root): Map<string, string> =>
  new Map(root.children.flatMap((node) => (node.type === 'definition' ? [[node.identifier, node.url]] : [])));

/** An address that a link may have: of the web, a mail address, or a view of this page; otherwise null. */
export function safeAddress(address: string): string | null {
  const inside = address.startsWith('/') && !/^\/[/\\]/.test(address);
  return inside || /^(https?:\/\/|mailto:)[^\s]/i.test(address) ? address : null;
}
