// The editor of a report: one document whose blocks keep their ids. Panels and images are blocks that are drawn by components.

import { docSchema } from '@milkdown/kit/preset/commonmark';
import { $node, $view } from '@milkdown/kit/utils';
import type { Node } from '@milkdown/kit/prose/model';
import { TextSelection, type Transaction } from '@milkdown/kit/prose/state';
import { MarkdownEditor, type EditorEvents } from '../user_content/markdownEditor';
import { idsAfter } from './blockIds';
import { newId } from '../../base/ids';
import { isSame, type Block, type ReportImage, type ReportPanels } from './reports';

/** A block that is no text. */
export type DrawnBlock = ReportImage | ReportPanels;

/** Draws a block in an element; returns what shows another state of it, and what ends it. */
export type DrawBlock = (element: HTMLElement, block: DrawnBlock, change: (block: DrawnBlock) => void, remove: () => void) => { update: (block: DrawnBlock) => void; destroy: () => void };

const NAME = 'report_block';
const CALLOUT = /^> \\\[!(\w+)\\?\]/;
const FORMULA = /\$[^$\n]+\$/g;
const ESCAPES = /\\([_*[\]])/g;
const DISPLAY = /^\$\$\s*\n?([\s\S]*?)\n?\s*\$\$$/;
const FENCE = /^```math\n([\s\S]*)\n```$/;

/** The Markdown that an editor shows: a formula of its own is edited as code. */
const shownMarkdown = (text: string): string => {
  const formula = DISPLAY.exec(text.trim());
  return formula ? `\`\`\`math\n${formula[1]}\n\`\`\`` : text;
};

/** The Markdown of a block as reports have it: the editor escapes what is of a callout or in a formula. */
export function storedMarkdown(written: string): string {
  const formula = FENCE.exec(written);
  if (formula) return `$$\n${formula[1]}\n$$`;
  return written.replace(CALLOUT, '> [!$1]').replace(FORMULA, (text) => text.replace(ESCAPES, '$1'));
}

export class ReportEditor {
  #editor!: MarkdownEditor;
  #nodes: readonly Node[] = [];
  #ids: readonly string[] = [];
  /** The Markdown of nodes, as it was loaded: other Markdown with the same meaning is not a change. */
  #texts = new WeakMap<Node, string>();
  /** The nodes that were loaded, by block. */
  #loaded = new Map<string, Node>();
  /** The ids of all nodes that there were: one that comes back by undoing is the same block. */
  #knownIds = new WeakMap<Node, string>();

  /** `changed`: the user changed a block, or `show` did. */
  static async create(root: HTMLElement, blocks: readonly Block[], draw: DrawBlock, changed: () => void, on: EditorEvents): Promise<ReportEditor> {
    const report = new ReportEditor();
    const document = (): void => {
      report.#follow();
      changed();
    };
    report.#editor = await MarkdownEditor.create(root, '', 'Text of the report', { ...on, document }, plugins(draw));
    report.show(blocks);
    return report;
  }

  get editor(): MarkdownEditor {
    return this.#editor;
  }

  /** The blocks as they are now. */
  blocks(): Block[] {
    return this.#nodes.flatMap((node, index): Block[] => {
      const id = this.#ids[index]!;
      if (node.type.name === NAME) return [{ ...(node.attrs.block as DrawnBlock), id }];
      const text = this.#textOf(node, id);
      return text === '' && index === this.#nodes.length - 1 ? [] : [{ id, kind: 'text', text }];
    });
  }

  /** Show other blocks. Nodes of those that are the same stay, and so do the cursor and what the user can undo in them. */
  show(blocks: readonly Block[]): void {
    const { view } = this.#editor;
    const present = new Map(this.blocks().map((block) => [block.id, block]));
    const nodeOf = new Map(this.#ids.map((id, index) => [id, this.#nodes[index]!]));
    const ids: string[] = [];
    const nodes = blocks.flatMap((block) => {
      const nodes = isSame(present.get(block.id), block) ? [nodeOf.get(block.id)!] : this.#nodesOf(block);
      nodes.forEach((_, index) => ids.push(index === 0 ? block.id : newId()));
      return nodes;
    });
    if (nodes.length === 0) {
      nodes.push(view.state.schema.nodes.paragraph!.create());
      ids.push(newId());
    }
    const cursor = this.#cursor();
    const change = replaced(view.state.tr, nodes).setMeta('addToHistory', false);
    const index = cursor === null ? -1 : ids.indexOf(cursor.id);
    if (cursor && index >= 0) {
      const start = nodes.slice(0, index).reduce((sum, node) => sum + node.nodeSize, 0);
      change.setSelection(TextSelection.near(change.doc.resolve(Math.min(start + cursor.offset, change.doc.content.size))));
    }
    [this.#nodes, this.#ids] = [nodes, ids];
    view.dispatch(change);
  }

  /** Insert a block after the one with the cursor. */
  insert(block: DrawnBlock): void {
    const { view } = this.#editor;
    this.#editor.insert(view.state.schema.nodes[NAME]!.create({ block }));
  }

  #follow(): void {
    const { doc } = this.#editor.view.state;
    const nodes = Array.from({ length: doc.childCount }, (_, index) => doc.child(index));
    this.#nodes.forEach((node, index) => this.#knownIds.set(node, this.#ids[index]!));
    const used = new Set(this.#ids);
    const fresh = (node: Node): string => {
      const knownId = this.#knownIds.get(node);
      const id = knownId === undefined || used.has(knownId) ? newId() : knownId;
      used.add(id);
      return id;
    };
    [this.#ids, this.#nodes] = [idsAfter(this.#nodes, this.#ids, nodes, fresh), nodes];
  }

  #cursor(): { id: string; offset: number } | null {
    const { selection, doc } = this.#editor.view.state;
    const index = selection.$from.index(0);
    const id = this.#ids[index];
    if (id === undefined) return null;
    const start = Array.from({ length: index }, (_, at) => doc.child(at).nodeSize).reduce((sum, size) => sum + size, 0);
    return { id, offset: selection.from - start };
  }

  #nodesOf(block: Block): Node[] {
    const { schema } = this.#editor.view.state;
    if (block.kind !== 'text') return [schema.nodes[NAME]!.create({ block })];
    const nodes = this.#editor.parsed(shownMarkdown(block.text));
    if (nodes.length === 0) return [schema.nodes.paragraph!.create()];
    if (nodes.length === 1) {
      this.#texts.set(nodes[0]!, block.text);
      this.#loaded.set(block.id, nodes[0]!);
    }
    return nodes;
  }

  #textOf(node: Node, id: string): string {
    let text = this.#texts.get(node);
    if (text === undefined) {
      const loaded = this.#loaded.get(id);
      text = loaded?.eq(node) ? this.#texts.get(loaded)! : storedMarkdown(this.#editor.markdownOf(node));
      this.#texts.set(node, text);
    }
    return text;
  }
}

/** The document of other nodes; where they are the same, nothing changes. */
function replaced(change: Transaction, nodes: readonly Node[]): Transaction {
  const { doc } = change;
  const [indexOf, starts] = [new Map<Node, number>(), [0]];
  doc.forEach((node, offset, index) => {
    indexOf.set(node, index);
    starts.push(offset + node.nodeSize);
  });
  const parts: { from: number; to: number; nodes: Node[] }[] = [];
  let next = 0;
  let added: Node[] = [];
  const end = (blockIndex: number): void => {
    if (blockIndex > next || added.length > 0) parts.push({ from: starts[next]!, to: starts[blockIndex]!, nodes: added });
    [next, added] = [blockIndex + 1, []];
  };
  for (const node of nodes) {
    const index = indexOf.get(node) ?? -1;
    if (index >= next) end(index);
    else added.push(node);
  }
  end(doc.childCount);
  // From the end, so that what comes before keeps its place.
  return parts.reverse().reduce((all, part) => all.replaceWith(part.from, part.to, part.nodes), change);
}

function plugins(draw: DrawBlock) {
  // On the first level only: of quotes and lists, a report has no other blocks than text.
  const doc = $node('doc', () => ({ ...docSchema.schema, content: `(block | ${NAME})+` }));
  const block = $node(NAME, () => ({
    atom: true,
    selectable: true,
    draggable: true,
    isolating: true,
    attrs: { block: { default: null } },
    parseDOM: [{ tag: 'div[data-report-block]', getAttrs: pastedBlock }],
    toDOM: (node) => ['div', { 'data-report-block': JSON.stringify(node.attrs.block) }],
    parseMarkdown: { match: () => false, runner: () => undefined },
    toMarkdown: { match: (node) => node.type.name === NAME, runner: () => undefined },
  }));
  const drawn = $view(block, () => (node, view, getPos) => {
    const dom = document.createElement('div');
    dom.className = 'drawn';
    dom.contentEditable = 'false';
    const position = (): number | undefined => getPos();
    const change = (changed: DrawnBlock): void => {
      const at = position();
      if (at !== undefined) view.dispatch(view.state.tr.setNodeMarkup(at, undefined, { block: changed }));
    };
    const remove = (): void => {
      const at = position();
      if (at !== undefined) view.dispatch(view.state.tr.delete(at, at + 1));
      view.focus();
    };
    const shown = draw(dom, node.attrs.block as DrawnBlock, change, remove);
    return {
      dom,
      update: (next: Node): boolean => {
        if (next.type.name !== NAME) return false;
        shown.update(next.attrs.block as DrawnBlock);
        return true;
      },
      // What happens inside is the component's.
      stopEvent: (event: Event): boolean => !/^(drag|drop)/.test(event.type),
      ignoreMutation: () => true,
      destroy: () => shown.destroy(),
    };
  });
  return [doc, block, drawn].flat();
}

/** A block that was copied from a report; its panels get ids of their own. */
function pastedBlock(element: HTMLElement | string): { block: DrawnBlock } | false {
  if (typeof element === 'string') return false;
  try {
    const block = JSON.parse(element.dataset.reportBlock ?? '') as DrawnBlock;
    if (block.kind === 'image') return { block: { ...block, id: newId() } };
    if (block.kind !== 'panels' || !Array.isArray(block.panels)) return false;
    return { block: { ...block, id: newId(), panels: block.panels.map((panel) => ({ ...panel, id: newId() })) } };
  } catch {
    return false; // pasted from elsewhere
  }
}
