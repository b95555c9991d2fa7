import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { addSection, EMPTY, type Layout } from './layout';
import { SavedLayout } from './savedLayout.svelte';
import { Conflict, type Kept, type Shelf } from './shelf';

/** A place for layouts as a server has it, for one user or several windows of one. */
class Memory implements Shelf {
  readonly keeps = 'server';
  own: Kept | null = null;
  published: Kept | null = null;
  saves = 0;
  problem: Error | null = null;

  async load() {
    if (this.problem) throw this.problem;
    return { own: this.own, published: this.published, mayPublish: true };
  }

  async save(layout: Layout, before: Kept | null, published: boolean): Promise<Kept> {
    if (this.problem) throw this.problem;
    const now = published ? this.published : this.own;
    if (now?.revision !== before?.revision) throw new Conflict();
    const kept = { id: published ? 2 : 1, revision: (now?.revision ?? 0) + 1, layout };
    if (published) this.published = kept;
    else this.own = kept;
    this.saves += 1;
    return kept;
  }

  async remove(): Promise<void> {
    this.own = null;
  }
}

const titles = ({ sections }: Layout): string => sections.map(({ title }) => title).join(' ');
const kept = (title: string, revision = 1): Kept => ({ id: 9, revision, layout: addSection(EMPTY, title) });

async function opened(shelf: Shelf): Promise<SavedLayout> {
  const saved = new SavedLayout(shelf);
  await vi.waitUntil(() => saved.state !== 'loading');
  return saved;
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe('a saved layout', () => {
  it('is the user’s own, otherwise the published one', async () => {
    const shelf = new Memory();
    shelf.published = kept('published');
    expect(titles((await opened(shelf)).history.layout)).toBe('published');
    shelf.own = kept('mine');
    expect(titles((await opened(shelf)).history.layout)).toBe('mine');
  });

  it('is saved after the save before, however long that takes', async () => {
    const shelf = new Memory();
    const saved = await opened(shelf);
    const save = shelf.save.bind(shelf);
    shelf.save = async (...what) => {
      await new Promise((resolve) => setTimeout(resolve, 5000));
      return save(...what);
    };
    saved.change(addSection(saved.history.layout, 'a'));
    await vi.advanceTimersByTimeAsync(1000);
    saved.change(addSection(saved.history.layout, 'b'));
    await vi.advanceTimersByTimeAsync(20_000);
    expect([saved.state, titles(shelf.own!.layout)]).toEqual(['saved', 'a b']);
    expect(shelf.saves).toBe(2);
  });

  it('is saved once after several changes, for the user only', async () => {
    const shelf = new Memory();
    shelf.published = kept('published');
    const saved = await opened(shelf);
    for (const title of ['a', 'b', 'c']) saved.change(addSection(saved.history.layout, title));
    saved.history.undo();
    expect(saved.state).toBe('unsaved');
    await vi.advanceTimersByTimeAsync(2000);
    expect([saved.state, shelf.saves, titles(shelf.own!.layout), titles(shelf.published.layout)]).toEqual(['saved', 1, 'published a b', 'published']);
  });

  it('of others stays theirs where a section is only folded', async () => {
    const shelf = new Memory();
    shelf.published = kept('published');
    const saved = await opened(shelf);
    saved.fold(saved.history.layout.sections[0]!.id, true);
    await vi.advanceTimersByTimeAsync(2000);
    expect([saved.history.layout.sections[0]!.folded, saved.history.canUndo, shelf.own]).toEqual([true, false, null]);
  });

  it('is not overwritten where another window changed it, until the user decides', async () => {
    const shelf = new Memory();
    shelf.own = kept('mine');
    const saved = await opened(shelf);
    shelf.own = kept('theirs', 2);
    saved.change(addSection(saved.history.layout, 'more'));
    await vi.advanceTimersByTimeAsync(2000);
    expect([saved.state, titles(shelf.own.layout)]).toEqual(['blocked', 'theirs']);
    saved.change(addSection(saved.history.layout, 'and more'));
    await vi.advanceTimersByTimeAsync(2000);
    expect(titles(shelf.own.layout)).toBe('theirs');
    await saved.overwrite();
    expect([saved.state, titles(shelf.own.layout)]).toEqual(['saved', 'mine more and more']);
  });

  it('can be loaded again instead', async () => {
    const shelf = new Memory();
    const saved = await opened(shelf);
    shelf.own = kept('theirs');
    saved.change(addSection(EMPTY, 'mine'));
    await vi.advanceTimersByTimeAsync(2000);
    await saved.load();
    expect([saved.state, saved.problem, titles(saved.history.layout)]).toEqual(['saved', '', 'theirs']);
  });

  it('says that it could not be saved, and is saved with the next change', async () => {
    const shelf = new Memory();
    const saved = await opened(shelf);
    shelf.problem = new Error('The server does not respond.');
    saved.change(addSection(EMPTY, 'a'));
    await vi.advanceTimersByTimeAsync(2000);
    expect(saved.problem).toBe('The panels could not be saved: The server does not respond.');
    shelf.problem = null;
    saved.change(addSection(saved.history.layout, 'b'));
    await vi.advanceTimersByTimeAsync(2000);
    expect([saved.problem, titles(shelf.own!.layout)]).toEqual(['', 'a b']);
  });

  it('is published beside one’s own, which can be given up for it', async () => {
    const shelf = new Memory();
    const saved = await opened(shelf);
    saved.change(addSection(EMPTY, 'a'));
    await vi.advanceTimersByTimeAsync(2000);
    await saved.publish();
    saved.change(addSection(saved.history.layout, 'b'));
    await saved.usePublished();
    await vi.advanceTimersByTimeAsync(2000);
    expect([titles(saved.history.layout), shelf.own, titles(shelf.published!.layout)]).toEqual(['a', null, 'a']);
  });

  it('that cannot be read blocks nothing for good', async () => {
    const shelf = new Memory();
    shelf.problem = new Error('This is not JSON.');
    const saved = await opened(shelf);
    expect([saved.state, saved.problem]).toEqual(['blocked', 'This is not JSON.']);
    shelf.problem = null;
    saved.startOver();
    saved.change(addSection(EMPTY, 'a'));
    await vi.advanceTimersByTimeAsync(2000);
    expect(titles(shelf.own!.layout)).toBe('a');
  });
});
