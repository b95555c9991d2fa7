// Media of several runs, name by name and step by step.

import type { RunKey } from '../../../base/api';
import type { HistogramValue, Kind } from './media';
import type { MediaKey } from '../../../base/wire';

/** A run whose media are compared. */
export interface ComparedRun {
  key: RunKey;
  project: string;
  name: string;
  /** That of its lines in charts. */
  color: string;
}

/** A name, and for each run what it has under it; null: nothing. */
export interface ComparedKey {
  key: string;
  kind: Kind;
  found: (MediaKey | null)[];
}

/** The names of all runs, those that most runs have first. */
export function comparedKeys(keysOfRuns: readonly (readonly MediaKey[])[]): ComparedKey[] {
  const byName = new Map<string, ComparedKey>();
  keysOfRuns.forEach((keys, run) => {
    for (const mediaKey of keys) {
      const compared = byName.get(mediaKey.key) ?? { key: mediaKey.key, kind: mediaKey.kind, found: keysOfRuns.map(() => null) };
      compared.found[run] = mediaKey;
      byName.set(mediaKey.key, compared);
    }
  });
  const count = ({ found: keys }: ComparedKey): number => keys.filter((key) => key !== null).length;
  return [...byName.values()].sort((a, b) => count(b) - count(a));
}

/** All steps of several runs, ascending. */
export const allSteps = (stepsOfRuns: readonly (readonly number[])[]): number[] => [...new Set(stepsOfRuns.flat())].sort((a, b) => a - b);

/** The last of some ascending steps that is not after another; null if all are. */
export function stepAt(steps: readonly number[], at: number): number | null {
  let [low, high] = [0, steps.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle]! <= at) low = middle + 1;
    else high = middle;
  }
  return low === 0 ? null : steps[low - 1]!;
}

/** From the lowest edge of some histograms to the highest; null if none has values. */
export function commonExtent(histograms: readonly (HistogramValue | null)[]): [number, number] | null {
  const edges = histograms.flatMap((histogram) => histogram?.edges ?? []).filter(Number.isFinite);
  const low = edges.reduce((a, b) => Math.min(a, b), Infinity);
  const high = edges.reduce((a, b) => Math.max(a, b), -Infinity);
  return low <= high ? [low, high] : null;
}

export interface Bar {
  /** All as shares of the whole: of the extent, and of the tallest bar. */
  left: number;
  width: number;
  height: number;
}

/** The bars of a histogram on an extent. A single value gets a thin bar. */
export function barsOf({ counts, edges }: HistogramValue, [low, high]: readonly [number, number]): Bar[] {
  const tallest = counts.reduce((a, b) => Math.max(a, b), 1);
  const range = high - low || 1;
  const THIN = 0.01;
  return counts.map((count, i) => {
    const width = (edges[i + 1]! - edges[i]!) / range;
    const left = high > low ? (edges[i]! - low) / range : 0.5 - THIN / 2;
    return { left, width: width > 0 ? width : THIN, height: count / tallest };
  });
}
