// A layout with undo and redo.

import type { Layout } from './layout';

const MAX_STEPS = 100;

export class LayoutHistory {
  #past = $state.raw<readonly Layout[]>([]);
  #future = $state.raw<readonly Layout[]>([]);
  #layout: Layout;
  canUndo = $derived(this.#past.length > 0);
  canRedo = $derived(this.#future.length > 0);

  constructor(
    layout: Layout,
    /** Called after each change, undo and redo. */
    private readonly changed: () => void = () => undefined,
  ) {
    this.#layout = $state.raw(layout);
  }

  get layout(): Layout {
    return this.#layout;
  }

  /** Make a change that can be undone. */
  change(layout: Layout): void {
    if (layout === this.#layout) return;
    this.#past = [...this.#past, this.#layout].slice(-MAX_STEPS);
    this.#future = [];
    this.#show(layout);
  }

  undo(): void {
    const before = this.#past[this.#past.length - 1];
    if (!before) return;
    this.#past = this.#past.slice(0, -1);
    this.#future = [...this.#future, this.#layout];
    this.#show(before);
  }

  redo(): void {
    const after = this.#future[this.#future.length - 1];
    if (!after) return;
    this.#future = this.#future.slice(0, -1);
    this.#past = [...this.#past, this.#layout];
    this.#show(after);
  }

  /** Show the layout in another way, which is nothing to undo and nothing to save. */
  replace(layout: Layout): void {
    this.#layout = layout;
  }

  /** Begin again with another layout, such as the one that was loaded. */
  reset(layout: Layout): void {
    this.#past = [];
    this.#future = [];
    this.#layout = layout;
  }

  #show(layout: Layout): void {
    this.#layout = layout;
    this.changed();
  }
}
