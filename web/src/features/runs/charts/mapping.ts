// Between the steps of a run, the values of a logged metric, and times: what was logged says which belong together.

import type { Value } from '../../../base/api';
import type { LoggedPoints } from '../../../chart/loggedPoints';
import type { Points, Range } from '../../../chart/points';

/** Where points are on two axes. */
export interface Pairs {
  from: readonly Value[];
  to: readonly Value[];
}

/** Lines that say enough about a run: the longest ones. */
const LINES = 4;

export const longest = (lines: Iterable<LoggedPoints>): LoggedPoints[] => [...lines].sort((a, b) => b.x.length - a.x.length).slice(0, LINES);

/** A range on one axis as that on another one. Between two points, what is between them belongs together; null if nothing does. */
export function mapped(lines: Iterable<Pairs>, range: Range): Range | null {
  let [min, max] = [Infinity, -Infinity];
  for (const { from, to } of lines) {
    for (let i = 0; i < from.length; i++) {
      const [a, b, u, v] = [from[i], from[i + 1] ?? from[i], to[i], to[i + 1] ?? to[i]];
      if (a == null || b == null || u == null || v == null) continue;
      const [low, high] = [Math.max(Math.min(a, b), range.min), Math.min(Math.max(a, b), range.max)];
      if (low > high) continue;
      for (const at of [low, high]) {
        const position = a === b ? u : u + ((v - u) * (at - a)) / (b - a);
        min = Math.min(min, position);
        max = Math.max(max, position);
      }
    }
  }
  return max > min ? { min, max } : null;
}

/** Points over time as points over the axis of a logged line, without those beyond its ends. */
export function onAxisOf(points: Pick<Points, 'x' | 'y'>, times: readonly Value[], positions: readonly number[]): Points {
  const order = [...times.keys()].filter((i) => times[i] !== null).sort((i, j) => times[i]! - times[j]!);
  const pairs: [x: number, y: Value][] = [];
  let next = 0;
  points.x.forEach((time, i) => {
    while (next < order.length && times[order[next]!]! < time) next++;
    if (next === 0 && time < (times[order[0]!] ?? Infinity)) return;
    const [before, after] = [order[Math.max(0, next - 1)], order[next]];
    if (before === undefined || after === undefined) return;
    const [t, u] = [times[before]!, times[after]!];
    const share = u === t ? 1 : (time - t) / (u - t);
    pairs.push([positions[before]! + (positions[after]! - positions[before]!) * share, points.y[i] ?? null]);
  });
  pairs.sort(([a], [b]) => a - b);
  return { x: pairs.map(([x]) => x), y: pairs.map(([, y]) => y), low: null, high: null, n: null };
}
