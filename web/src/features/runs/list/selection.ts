// Which runs of the table are selected: a few of them, or all that match the filter.

import type { RunKey } from '../../../base/api';

export const keyOf = ({ id, entity }: RunKey): string => `${entity ?? ''}/${id}`;

export interface Selected extends RunKey {
  name: string;
  may: string[] | null;
}

/** `all`: besides those in `runs`, all that match the filter. */
export interface Selection {
  runs: ReadonlyMap<string, Selected>;
  all: boolean;
  /** Where the last click was: a click with Shift selects from there. */
  anchor: number | null;
}

export const NOTHING: Selection = { runs: new Map(), all: false, anchor: null };

export const isSelected = (selection: Selection, run: RunKey): boolean => selection.all || selection.runs.has(keyOf(run));

/** A click on the box of a run. After "all that match", the click starts a selection of its own. */
export function clicked(selection: Selection, run: Selected, index: number): Selection {
  const runs = new Map(selection.all ? [] : selection.runs);
  if (!runs.delete(keyOf(run))) runs.set(keyOf(run), run);
  return { runs, all: false, anchor: index };
}

/** From where a click with Shift selects, to where. */
export const rangeTo = (selection: Selection, index: number): [first: number, last: number] => {
  const anchor = selection.anchor ?? index;
  return [Math.min(anchor, index), Math.max(anchor, index)];
};

/** A click with Shift: the runs from the anchor on are selected, too. */
export function extended(selection: Selection, range: readonly Selected[]): Selection {
  const runs = new Map(selection.all ? [] : selection.runs);
  for (const run of range) runs.set(keyOf(run), run);
  return { runs, all: false, anchor: selection.anchor };
}

export const allMatching = (selection: Selection): Selection => ({ ...selection, runs: new Map(), all: true });
