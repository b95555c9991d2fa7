import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { dashOf } from '../../chart/palette';

type Module = typeof import('./runColour');
const storage = new Map<string, string>();
const localStorage = { getItem: (key: string) => storage.get(key) ?? null, setItem: (key: string, value: string) => storage.set(key, value) };

/** The page, loaded anew: it knows only what the browser keeps. */
async function loaded(): Promise<Module> {
  vi.resetModules();
  return import('./runColour');
}

beforeEach(() => {
  storage.clear();
  vi.stubGlobal('localStorage', localStorage);
});
afterEach(() => vi.unstubAllGlobals());

const runs = (count: number): string[] => Array.from({ length: count }, (_, i) => `brave-otter-${i}`);

describe('the colour of a run', () => {
  it('is the same at every visit', async () => {
    const before = (await loaded()).runSlot('brave-otter-1');
    expect((await loaded()).runSlot('brave-otter-1')).toBe(before);
  });

  it('differs from that of all others that are shown', async () => {
    const { claimColours, runSlot } = await loaded();
    claimColours(runs(40));
    expect(new Set(runs(40).map(runSlot)).size).toBe(40);
  });

  it('stays while others are hidden and shown', async () => {
    const { claimColours, runSlot } = await loaded();
    claimColours(runs(8));
    const before = runs(8).map(runSlot);
    claimColours(runs(8).slice(4));
    claimColours([...runs(8).slice(4), 'another']);
    expect(runs(8).slice(4).map(runSlot)).toEqual(before.slice(4));
  });

  it('is the same on a page with other runs, in another order, after a reload', async () => {
    const first = await loaded();
    first.claimColours(runs(10));
    const before = runs(10).map(first.runSlot);
    const second = await loaded();
    second.claimColours(['another', ...runs(10).slice(3, 6).reverse()]);
    expect(runs(10).slice(3, 6).map(second.runSlot)).toEqual(before.slice(3, 6));
    expect(before.slice(3, 6)).not.toContain(second.runSlot('another'));
  });

  it('has dashes where colours repeat', () => {
    expect(dashOf(9, 'standard')).toEqual([]);
    expect(dashOf(10, 'standard')).not.toEqual([]);
    expect(dashOf(7, 'tol-bright')).not.toEqual([]);
  });

  it('does not depend on what something else stored', async () => {
    storage.set('runvitals.givenColours', '{"a": 1}');
    const before = (await loaded()).runSlot('a');
    storage.set('runvitals.givenColours', 'no JSON');
    expect((await loaded()).runSlot('a')).toBe(before);
  });
});
