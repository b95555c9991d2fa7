// An editor for Markdown that shows the text as it will look. Loaded only when someone edits.

import { defaultValueCtx, Editor, editorViewCtx, editorViewOptionsCtx, parserCtx, rootCtx, serializerCtx } from '@milkdown/kit/core';
import type { MilkdownPlugin } from '@milkdown/kit/ctx';
import { clipboard } from '@milkdown/kit/plugin/clipboard';
import { history } from '@milkdown/kit/plugin/history';
import { commonmark } from '@milkdown/kit/preset/commonmark';
import { createTable, gfm } from '@milkdown/kit/preset/gfm';
import { undoDepth } from '@milkdown/kit/prose/history';
import { setBlockType, wrapIn } from '@milkdown/kit/prose/commands';
import type { Node, NodeType } from '@milkdown/kit/prose/model';
import { wrapInList } from '@milkdown/kit/prose/schema-list';
import { NodeSelection, Plugin, TextSelection, type Command } from '@milkdown/kit/prose/state';
import type { EditorView } from '@milkdown/kit/prose/view';
import { $prose } from '@milkdown/kit/utils';
import { cleanedHtml } from './pastedHtml';

/** What `/` or `@` inserts. */
export interface BlockChoice {
  title: string;
  note?: string | undefined;
  insert: (editor: MarkdownEditor) => void;
}

/** The list under the cursor, of elements or of what is mentioned; `words` are what follows the mark. Coordinates are of the window. */
export interface SlashMenu {
  mark: '/' | '@';
  words: string;
  left: number;
  top: number;
}

/** The block that the handle belongs to. `top` is relative to the editor. */
export interface BlockPlace {
  index: number;
  top: number;
}

export interface EditorEvents {
  /** The text changed; without it, nothing writes the whole text at each key. */
  text?: (markdown: string) => void;
  /** The document changed. */
  document?: () => void;
  menu: (menu: SlashMenu | null) => void;
  block: (block: BlockPlace) => void;
  /** Undo what the editor did not see being made; called when it has nothing to undo itself. */
  undo?: () => void;
  /** Do again what `undo` undid; returns whether there was something. */
  redo?: () => boolean;
  /** A key while the list is open; returns whether it was used. */
  menuKey: (key: string) => boolean;
}

const AFTER_MARK = /(?:^|\s)(?:(\/)([\p{L}\d ]{0,20})|(@)([^\s@]{0,60}))$/u;

export class MarkdownEditor {
  readonly view: EditorView;
  #milkdown: Editor;
  #on: EditorEvents;
  /** The text as the editor writes it: other Markdown with the same meaning is not a change. */
  #markdown: string;
  #document: Node;

  private constructor(milkdown: Editor, on: EditorEvents) {
    this.#milkdown = milkdown;
    this.#on = on;
    this.view = milkdown.ctx.get(editorViewCtx);
    this.#document = this.view.state.doc;
    this.#markdown = on.text ? this.#written() : '';
  }

  /** `plugins`: what else the text may have, and how that is shown. */
  static async create(root: HTMLElement, markdown: string, label: string, on: EditorEvents, plugins: readonly MilkdownPlugin[] = []): Promise<MarkdownEditor> {
    let editor: MarkdownEditor | null = null;
    const watching = $prose(
      () =>
        new Plugin({
          view: () => ({ update: () => editor?.changed() }),
        }),
    );
    const milkdown = await Editor.make()
      .config((ctx) => {
        ctx.set(rootCtx, root);
        ctx.set(defaultValueCtx, markdown);
        // Before the keys of the plugins.
        const handleKeyDown = (view: EditorView, event: KeyboardEvent): boolean => editor?.keydown(view, event) ?? false;
        ctx.set(editorViewOptionsCtx, { handleKeyDown, transformPastedHTML: cleanedHtml, attributes: { role: 'textbox', 'aria-multiline': 'true', 'aria-label': label, class: 'markdown' } });
      })
      .use(commonmark)
      .use(gfm)
      .use(history)
      .use(clipboard)
      .use(watching)
      .use([...plugins])
      .create();
    editor = new MarkdownEditor(milkdown, on);
    return editor;
  }

  destroy(): void {
    void this.#milkdown.destroy();
  }

  #written(): string {
    return this.#milkdown.ctx.get(serializerCtx)(this.view.state.doc);
  }

  /** The blocks that a text has. */
  parsed(markdown: string): Node[] {
    const document = this.#milkdown.ctx.get(parserCtx)(markdown);
    return Array.from({ length: document.childCount }, (_, index) => document.child(index));
  }

  /** A block as Markdown. */
  markdownOf(block: Node): string {
    return this.#milkdown.ctx.get(serializerCtx)(this.view.state.schema.topNodeType.create(null, block)).trim();
  }

  changed(): void {
    const { doc } = this.view.state;
    if (doc !== this.#document) {
      this.#document = doc;
      this.#on.document?.();
      if (this.#on.text) this.#noteText();
    }
    const { selection } = this.view.state;
    const block = this.placeOf(selection.$from.index(0));
    if (block) this.#on.block(block);
    this.#on.menu(this.#menu());
  }

  #noteText(): void {
    const markdown = this.#written();
    if (markdown === this.#markdown) return;
    this.#markdown = markdown;
    this.#on.text?.(markdown);
  }

  keydown(view: EditorView, event: KeyboardEvent): boolean {
    if (this.#menu() && this.#on.menuKey(event.key)) return true;
    const step = historyStep(event);
    if (step === 'redo') return this.#on.redo?.() ?? false;
    if (step === 'undo' && this.#on.undo && undoDepth(view.state) === 0) {
      this.#on.undo();
      return true;
    }
    if (!event.altKey || (event.key !== 'ArrowUp' && event.key !== 'ArrowDown')) return false;
    return this.move(view.state.selection.$from.index(0), event.key === 'ArrowUp' ? -1 : 1);
  }

  /** The mark before the cursor, and the words between. */
  #marked(): Pick<SlashMenu, 'mark' | 'words'> | null {
    const { $from } = this.view.state.selection;
    const match = AFTER_MARK.exec($from.parent.textBetween(0, $from.parentOffset, undefined, '\ufffc'));
    return match && (match[1] ? { mark: '/', words: match[2] ?? '' } : { mark: '@', words: match[4] ?? '' });
  }

  #menu(): SlashMenu | null {
    const { $from, empty } = this.view.state.selection;
    if (!empty || $from.parent.type.name !== 'paragraph') return null;
    const marked = this.#marked();
    if (!marked) return null;
    const { left, bottom } = this.view.coordsAtPos($from.pos);
    return { ...marked, left, top: bottom };
  }

  /** Where a block is; null if there is none. */
  placeOf(index: number): BlockPlace | null {
    const { doc } = this.view.state;
    if (index < 0 || index >= doc.childCount) return null;
    const dom = this.view.nodeDOM(startOf(doc, index));
    if (!(dom instanceof HTMLElement)) return null;
    return { index, top: dom.getBoundingClientRect().top - this.view.dom.getBoundingClientRect().top };
  }

  /** The block at a height of the window. */
  blockAt(clientY: number): BlockPlace | null {
    const { doc } = this.view.state;
    for (let index = doc.childCount - 1; index >= 0; index--) {
      const dom = this.view.nodeDOM(startOf(doc, index));
      if (dom instanceof HTMLElement && dom.getBoundingClientRect().top <= clientY) return this.placeOf(index);
    }
    return this.placeOf(0);
  }

  /** Move a block up (-1) or down (1); returns whether there was room. */
  move(index: number, by: -1 | 1): boolean {
    const { doc, selection, tr } = this.view.state;
    const target = index + by;
    if (target < 0 || target >= doc.childCount) return false;
    const from = startOf(doc, index);
    const node = doc.child(index);
    tr.delete(from, from + node.nodeSize);
    const to = startOf(tr.doc, target);
    tr.insert(to, node);
    const offset = Math.min(Math.max(1, selection.from - from), node.nodeSize - 1);
    tr.setSelection(TextSelection.near(tr.doc.resolve(to + offset)));
    this.view.dispatch(tr.scrollIntoView());
    return true;
  }

  /** Remove a block. */
  remove(index: number): void {
    const { doc, tr } = this.view.state;
    const from = startOf(doc, index);
    this.view.dispatch(tr.delete(from, from + doc.child(index).nodeSize));
    this.view.focus();
  }

  /** Begin to drag a block; dropping it moves it. */
  drag(index: number, event: DragEvent): void {
    const { doc, tr } = this.view.state;
    const from = startOf(doc, index);
    this.view.dispatch(tr.setSelection(NodeSelection.create(doc, from)));
    const slice = this.view.state.selection.content();
    const dom = this.view.nodeDOM(from);
    event.dataTransfer?.clearData();
    event.dataTransfer?.setData('text/plain', doc.child(index).textContent);
    if (dom instanceof HTMLElement) event.dataTransfer?.setDragImage(dom, 0, 0);
    this.view.dragging = { slice, move: true };
  }

  /** Insert what was chosen from the list, in place of the mark and what follows. */
  choose(choice: BlockChoice): void {
    const { $from } = this.view.state.selection;
    const marked = this.#marked();
    if (marked) this.view.dispatch(this.view.state.tr.delete($from.pos - marked.words.length - 1, $from.pos));
    choice.insert(this);
    this.view.focus();
  }

  run(command: Command): void {
    command(this.view.state, this.view.dispatch);
  }

  type(name: string): NodeType {
    return this.view.state.schema.nodes[name]!;
  }

  insert(node: Node): void {
    this.view.dispatch(this.view.state.tr.replaceSelectionWith(node).scrollIntoView());
  }

  /** Insert a text, as a link if it leads somewhere, and go on after it. */
  write(text: string, href: string | null): void {
    const { schema, tr } = this.view.state;
    const marks = href === null ? [] : [schema.marks.link!.create({ href })];
    this.view.dispatch(tr.replaceSelectionWith(schema.text(text, marks), false).insertText(' ').removeStoredMark(schema.marks.link!).scrollIntoView());
  }

  table(): void {
    this.insert(createTable(this.#milkdown.ctx, 3, 2));
  }

  /** Make the item of a list that the cursor is in a task. */
  task(): void {
    const { $from } = this.view.state.selection;
    for (let depth = $from.depth; depth > 0; depth--) {
      const node = $from.node(depth);
      if (node.type.name !== 'list_item') continue;
      this.view.dispatch(this.view.state.tr.setNodeMarkup($from.before(depth), undefined, { ...node.attrs, checked: false }));
      return;
    }
  }
}

/** What a key does to the history, as the history of the editor has it. */
function historyStep({ key, altKey, ctrlKey, metaKey, shiftKey }: KeyboardEvent): 'undo' | 'redo' | null {
  const isMac = /Mac|iP(hone|[oa]d)/.test(navigator.platform);
  if (altKey || (isMac ? !metaKey : !ctrlKey)) return null;
  const letter = key.toLowerCase();
  if (letter === 'z') return shiftKey ? 'redo' : 'undo';
  return letter === 'y' ? 'redo' : null;
}

function startOf(doc: Node, index: number): number {
  let position = 0;
  for (let i = 0; i < index; i++) position += doc.child(i).nodeSize;
  return position;
}

const heading = (level: number): BlockChoice => ({
  title: `Heading ${level}`,
  insert: (editor) => editor.run(setBlockType(editor.type('heading'), { level })),
});

export const BLOCKS: readonly BlockChoice[] = [
  { title: 'Text', insert: (editor) => editor.run(setBlockType(editor.type('paragraph'))) },
  heading(1),
  heading(2),
  heading(3),
  { title: 'Bullet list', insert: (editor) => editor.run(wrapInList(editor.type('bullet_list'))) },
  { title: 'Numbered list', insert: (editor) => editor.run(wrapInList(editor.type('ordered_list'))) },
  {
    title: 'Task list',
    insert: (editor) => {
      editor.run(wrapInList(editor.type('bullet_list')));
      editor.task();
    },
  },
  { title: 'Quote', insert: (editor) => editor.run(wrapIn(editor.type('blockquote'))) },
  { title: 'Code', insert: (editor) => editor.run(setBlockType(editor.type('code_block'))) },
  { title: 'Table', insert: (editor) => editor.table() },
  { title: 'Divider', insert: (editor) => editor.insert(editor.type('hr').create()) },
];

/** The elements whose title contains all words. */
export function matchingBlocks(words: string, choices: readonly BlockChoice[] = BLOCKS): readonly BlockChoice[] {
  const terms = words.toLowerCase().split(/\s+/);
  return choices.filter(({ title }) => terms.every((word) => title.toLowerCase().includes(word)));
}
