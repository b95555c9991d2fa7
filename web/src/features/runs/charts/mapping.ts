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
        const place = a === b ? u : u + ((v - u) * (at - a)) / (b - a);
        min = Math.min(min, place);
        max = Math.max(max, place);
      }
    }
  }
  return max > min ? { min, max } : null;
}

/** Points over time as points over the axis of a logged line, without those beyond its ends. */
export function onAxisOf(points: Pick<Points, 'x' | 'y'>, times: readonly Value[], places: readonly number[]): Points {
  const known = [...times.keys()].filter((i) => times[i] !== null).sort((i, j) => times[i]! - times[j]!);
  const found: [x: number, y: Value][] = [];
  let next = 0;
  points.x.forEach((time, i) => {
    while (next < known.length && times[known[next]!]! < time) next++;
    if (next === 0 && time < (times[known[0]!] ?? Infinity)) return;
    const [before, after] = [known[Math.max(0, next - 1)], known[next]];
    if (before === undefined || after === undefined) return;
    const [t, u] = [times[before]!, times[after]!];
    const share = u === t ? 1 : (time - t) / (u - t);
    found.push([places[before]! + (places[after]! - places[before]!) * share, points.y[i] ?? null]);
  });
  found.sort(([a], [b]) => a - b);
  return { x: found.map(([x]) => x), y: found.map(([, y]) => y), low: null, high: null, n: null };
}
