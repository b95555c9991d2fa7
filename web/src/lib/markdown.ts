// Markdown as a tree. The page draws the tree itself, so that no text of a user becomes HTML.

import type { Root } from 'mdast';
import { fromMarkdown } from 'mdast-util-from-markdown';
import { gfmFromMarkdown } from 'mdast-util-gfm';
import { gfm } from 'micromark-extension-gfm';

export const markdownTree = (text: string): Root => fromMarkdown(text, { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] });

/** The address of a link, if it is one that a user may place; otherwise null. */
export function safeHref(url: string): string | null {
  try {
    const { protocol, href } = new URL(url, 'https://relative.invalid');
    if (!['https:', 'http:', 'mailto:'].includes(protocol)) return null;
    return href.startsWith('https://relative.invalid') ? url : href;
  } catch {
    return null;
  }
}
