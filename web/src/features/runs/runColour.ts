// The colour of a run where several are shown together: in a table, on charts, in a comparison.

import { SvelteMap } from 'svelte/reactivity';
import { dashOf, lineColor, type PaletteName } from '../../chart/palette';

const KEPT = 'runvitals.runColours';
const MAX_KEPT = 1000;
/** Runs look different by ten colours, and by the dashes of their lines. */
const COLOURS = 10;
const ROUNDS = 4;

/** What users chose; newest last. */
const chosen = new SvelteMap<string, number>(kept());
/** What runs were given because another run that is shown already has the colour of their id. */
const given = new Map<string, number>();

/**
 * The slot of a run in the palettes (`lineColor`). It follows from its id, unless the user chose another or
 * `claimColours` gave it another.
 */
export const runSlot = (id: string): number => chosen.get(id) ?? given.get(id) ?? preferred(id);

/** What a group of runs is called where it has a colour, by what its runs have in common. */
export const groupColourId = (values: readonly unknown[]): string => `group ${JSON.stringify(values)}`;

export const runColour = (id: string, dark: boolean, palette: PaletteName): string => lineColor(runSlot(id), dark, palette);

/** How the line of a run is dashed; empty: it is solid. */
export const runDash = (id: string, palette: PaletteName): number[] => dashOf(runSlot(id), palette);

/**
 * Make runs that are shown together look different.
 *
 * A run keeps what it has while it is shown. A new one gets the colour of its id if no other has it, otherwise the
 * next free one: the same runs in the same order always look the same.
 */
export function claimColours(ids: readonly string[]): void {
  const taken = new Set(ids.map((id) => chosen.get(id)));
  for (const id of ids) {
    if (chosen.has(id)) continue;
    const before = given.get(id);
    const slot = before !== undefined && !taken.has(before) ? before : freeSlot(preferred(id), taken);
    taken.add(slot);
    given.set(id, slot);
  }
}

function freeSlot(first: number, taken: ReadonlySet<number | undefined>): number {
  for (let round = 0; round < ROUNDS; round++) {
    for (let i = 0; i < COLOURS; i++) {
      const slot = round * COLOURS + ((first + i) % COLOURS);
      if (!taken.has(slot)) return slot;
    }
  }
  return first;
}

/** The user's choice for a run; null: the colour of its id again. It is kept in this browser. */
export function chooseColour(id: string, slot: number | null): void {
  chosen.delete(id);
  if (slot !== null) chosen.set(id, slot);
  localStorage.setItem(KEPT, JSON.stringify([...chosen].slice(-MAX_KEPT)));
}

function kept(): [string, number][] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEPT) ?? '[]');
    return Array.isArray(found) ? found.filter((one): one is [string, number] => typeof one?.[0] === 'string' && Number.isInteger(one?.[1])) : [];
  } catch {
    return []; // not what this page writes
  }
}

/** FNV-1a of the id. */
function preferred(id: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < id.length; i++) hash = Math.imul(hash ^ id.charCodeAt(i), 0x01000193);
  return (hash >>> 0) % COLOURS;
}
