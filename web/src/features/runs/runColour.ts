// The colour of a run where several are shown together: in a table, on charts, in a comparison.

import { storageKey } from '../../base/address';
import { lineColor, type PaletteName } from '../../chart/palette';

const KEPT = storageKey('runvitals.givenColours');
const MAX_KEPT = 1000;
/** Runs look different by ten colours, and by the dashes of their lines. */
const COLOURS = 10;
const ROUNDS = 4;

/** What runs were given when they were shown together, on any page; newest last. */
const slots = new Map<string, number>(kept());

/** The slot of a run in the palettes (`lineColor`). It follows from its id, unless `claimColours` gave it another. */
export const runSlot = (id: string): number => slots.get(id) ?? preferred(id);

/** What a group of runs is called where it has a colour, by what its runs have in common. */
export const groupColourId = (values: readonly unknown[]): string => `group ${JSON.stringify(values)}`;

export const runColour = (id: string, dark: boolean, palette: PaletteName): string => lineColor(runSlot(id), dark, palette);

/**
 * Make runs that are shown together look different.
 *
 * A run keeps what it was given on any page of this browser, unless another one that is shown has the same. A new one
 * gets the colour of its id if no other has it, otherwise the next free one.
 */
export function claimColours(ids: readonly string[]): void {
  const takenSlots = new Set<number>();
  const without: string[] = [];
  for (const id of ids) {
    const before = slots.get(id);
    if (before === undefined || takenSlots.has(before)) without.push(id);
    else takenSlots.add(before);
  }
  for (const id of without) {
    const slot = freeSlot(preferred(id), takenSlots);
    takenSlots.add(slot);
    slots.delete(id);
    slots.set(id, slot);
  }
  if (without.length > 0) localStorage.setItem(KEPT, JSON.stringify([...slots].slice(-MAX_KEPT)));
}

function freeSlot(first: number, takenSlots: ReadonlySet<number>): number {
  for (let round = 0; round < ROUNDS; round++) {
    for (let i = 0; i < COLOURS; i++) {
      const slot = round * COLOURS + ((first + i) % COLOURS);
      if (!takenSlots.has(slot)) return slot;
    }
  }
  return first;
}

function kept(): [string, number][] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEPT) ?? '[]');
    return Array.isArray(stored) ? stored.filter((entry): entry is [string, number] => typeof entry?.[0] === 'string' && Number.isInteger(entry?.[1])) : [];
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
