// The colour of a run where several are shown together: in a table, on charts, in a comparison.

import { SvelteMap } from 'svelte/reactivity';
import { dashOf, lineColor, type PaletteName } from '../../chart/palette';

const KEPT = 'runvitals.runColours';
const KEPT_GIVEN = 'runvitals.givenColours';
const MAX_KEPT = 1000;
/** Runs look different by ten colours, and by the dashes of their lines. */
const COLOURS = 10;
const ROUNDS = 4;

/** What users chose; newest last. */
const chosen = new SvelteMap<string, number>(kept(KEPT));
/** What runs were given when they were shown together, on any page; newest last. */
const given = new Map<string, number>(kept(KEPT_GIVEN));

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
 * A run keeps what it was given on any page of this browser, unless another one that is shown has the same. A new one
 * gets the colour of its id if no other has it, otherwise the next free one.
 */
export function claimColours(ids: readonly string[]): void {
  const taken = new Set(ids.map((id) => chosen.get(id)));
  const without: string[] = [];
  for (const id of ids) {
    const before = given.get(id);
    if (chosen.has(id)) continue;
    if (before === undefined || taken.has(before)) without.push(id);
    else taken.add(before);
  }
  for (const id of without) {
    const slot = freeSlot(preferred(id), taken);
    taken.add(slot);
    given.delete(id);
    given.set(id, slot);
  }
  if (without.length > 0) localStorage.setItem(KEPT_GIVEN, JSON.stringify([...given].slice(-MAX_KEPT)));
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

function kept(name: string): [string, number][] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(name) ?? '[]');
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
