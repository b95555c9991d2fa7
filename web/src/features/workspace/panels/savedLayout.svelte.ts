// The layout of a workspace: the user's own if there is one, otherwise the published one. Changes are saved by themselves.

import { reasonOf } from '../../../base/api';
import { changeSection, EMPTY, type Layout } from './layout';
import { LayoutHistory } from './layoutHistory.svelte';
import { Conflict, type Kept, type Shelf } from './shelf';

/** `blocked`: someone else changed it, or it cannot be read; nothing is saved until the user decides. */
export type SaveState = 'loading' | 'saved' | 'unsaved' | 'saving' | 'blocked';

const WAIT_MS = 800;

export class SavedLayout {
  state = $state<SaveState>('loading');
  problem = $state('');
  own = $state.raw<Kept | null>(null);
  published = $state.raw<Kept | null>(null);
  mayPublish = $state(false);
  readonly history = new LayoutHistory(EMPTY, () => this.#changed());
  #timer: ReturnType<typeof setTimeout> | undefined;
  #closed = false;
  #saving: Promise<void> | null = null;

  constructor(readonly shelf: Shelf) {
    void this.load();
  }

  /** Load what is kept, instead of what is shown. */
  async load(): Promise<void> {
    clearTimeout(this.#timer);
    this.state = 'loading';
    this.problem = '';
    try {
      const saved = await this.shelf.load();
      this.own = saved.own;
      this.published = saved.published;
      this.mayPublish = saved.mayPublish;
      this.history.reset((saved.own ?? saved.published)?.layout ?? EMPTY);
      this.state = 'saved';
    } catch (problem) {
      this.problem = reasonOf(problem);
      this.state = 'blocked';
    }
  }

  #changed(): void {
    if (this.state === 'blocked') return;
    this.state = 'unsaved';
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.save(), WAIT_MS);
  }

  /** Save the user's own layout now, after what is being saved: that knows the newest revision only then. */
  async save(): Promise<void> {
    while (this.#saving) await this.#saving;
    this.#saving = this.#saveNow();
    await this.#saving;
    this.#saving = null;
  }

  async #saveNow(): Promise<void> {
    clearTimeout(this.#timer);
    const layout = this.history.layout;
    this.state = 'saving';
    try {
      this.own = await this.shelf.save(layout, this.own, false);
      this.problem = '';
      this.state = 'saved';
      if (layout !== this.history.layout) this.#changed(); // it was changed meanwhile
    } catch (problem) {
      this.state = problem instanceof Conflict ? 'blocked' : 'unsaved';
      this.problem = problem instanceof Conflict ? 'These panels were changed in another window meanwhile.' : `The panels could not be saved: ${reasonOf(problem)}`;
    }
  }

  /** Replace what was saved in another window. */
  async overwrite(): Promise<void> {
    this.own = (await this.shelf.load()).own;
    await this.save();
  }

  /** Begin without what is kept, because it cannot be read. */
  startOver(): void {
    this.history.reset(EMPTY);
    this.problem = '';
    this.state = 'saved';
  }

  /** Show this layout to everyone who has none of their own. */
  async publish(): Promise<void> {
    this.published = (await this.shelf.load()).published; // its newest revision: publishing replaces it
    this.published = await this.shelf.save(this.history.layout, this.published, true);
  }

  /** Give up the user's own layout for the published one. */
  async usePublished(): Promise<void> {
    clearTimeout(this.#timer);
    while (this.#saving) await this.#saving;
    if (this.own) await this.shelf.remove(this.own);
    this.own = null;
    this.history.reset(this.published?.layout ?? EMPTY);
    this.state = 'saved';
  }

  /** Fold or unfold a section. In published panels that is no change, so it makes no copy of them. */
  fold(id: string, folded: boolean): void {
    const layout = changeSection(this.history.layout, id, { folded });
    if (this.published && !this.own) this.history.replace(layout);
    else this.change(layout);
  }

  /** Change the layout, with undo. */
  change(layout: Layout): void {
    this.history.change(layout);
  }

  /** Save what is not saved yet; the page goes away. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#timer);
    if (this.state === 'unsaved' && !this.problem) void this.save();
  }
}
