// Points that a run logged, and the axis that they are drawn over.

import type { LoggedRow, Value } from '../base/api';
import { append, firstOf, type Points } from './points';
import type { Logged } from '../base/wire';

/** Values by step; `t` is when each was logged, in ms UTC. */
export interface LoggedPoints extends Points {
  t: Value[];
}

/** Who logged a line. */
export interface Process {
  host: string;
  rank: number | null;
}

/** The lines of one name, by label of their process. */
export type LoggedLines = Map<string, LoggedPoints & Process>;

export const processLabel = ({ host, rank }: Process): string => (rank === null ? host : `rank ${rank}`);

/** Logged values: by name, a line for each process. */
export function fromLogged(answer: Pick<Logged, 'groups'>): Map<string, LoggedLines> {
  const found = new Map<string, LoggedLines>();
  for (const group of answer.groups) {
    for (const [name, y] of Object.entries(group.series)) {
      const lines: LoggedLines = found.get(name) ?? new Map();
      found.set(name, lines);
      const points: LoggedPoints = {
        x: [...group.step],
        y,
        low: group.min?.[name] ?? null,
        high: group.max?.[name] ?? null,
        n: group.n && [...group.n],
        t: [...group.t],
      };
      const label = processLabel(group);
      const before = lines.get(label);
      lines.set(label, { ...(before ? resumed(before, points) : points), host: group.host, rank: group.rank });
    }
  }
  return found;
}

/** The points of a process and of the one that resumed its work, perhaps from an earlier step. */
function resumed(before: LoggedPoints, after: LoggedPoints): LoggedPoints {
  const first = after.x[0];
  if (first === undefined) return before;
  const cut = before.x.findIndex((x) => x >= first);
  const count = cut < 0 ? before.x.length : cut;
  const join = (a: Value[] | null, b: Value[] | null, mine: Value[], theirs: Value[]): Value[] | null =>
    a || b ? [...(a ?? mine).slice(0, count), ...(b ?? theirs)] : null;
  const ones = (points: LoggedPoints): number[] => points.n ?? points.x.map(() => 1);
  return {
    x: [...before.x.slice(0, count), ...after.x],
    y: [...before.y.slice(0, count), ...after.y],
    low: join(before.low, after.low, before.y, after.y),
    high: join(before.high, after.high, before.y, after.y),
    n: before.n || after.n ? [...ones(before).slice(0, count), ...ones(after)] : null,
    t: [...before.t.slice(0, count), ...after.t],
  };
}

/** Append a row's value, unless its step is not newer than the last one. */
export function appendRow(points: LoggedPoints, row: LoggedRow, value: Value): void {
  if (append(points, row.step, value)) points.t.push(row.t);
}

/** The same points over the time at which they were logged. */
export const byTime = (points: LoggedPoints): Points => over(points, points.t);

/** The same points over the values of another metric that the same process logged at the same steps. */
export const byMetric = (points: LoggedPoints, other: LoggedPoints | undefined): Points => over(points, valuesAt(points, other));

/** The values of another metric at the steps of some points; null where it has none. */
export function valuesAt(points: LoggedPoints, other: LoggedPoints | undefined): Value[] {
  const values = new Map(other?.x.map((step, i) => [step, other.y[i] ?? null]));
  return points.x.map((step) => values.get(step) ?? null);
}

/** Points in ascending order of another x, without those that have none. */
function over({ y, low, high, n }: Points, x: readonly Value[]): Points {
  const places = [...x.keys()].filter((i) => x[i] !== null).sort((a, b) => x[a]! - x[b]!);
  const sorted = <T>(values: readonly T[]): T[] => places.map((i) => values[i]!);
  return { x: places.map((i) => x[i]!), y: sorted(y), low: low && sorted(low), high: high && sorted(high), n: n && sorted(n) };
}

/** The times between which the points with x in a range were logged; null if there are none. */
export function timesOf(lines: Iterable<LoggedPoints>, inRange: (points: LoggedPoints, i: number) => boolean): { min: number; max: number } | null {
  let [min, max] = [Infinity, -Infinity];
  for (const points of lines) {
    points.t.forEach((t, i) => {
      if (t === null || !inRange(points, i)) return;
      min = Math.min(min, t);
      max = Math.max(max, t);
    });
  }
  return max >= min ? { min, max } : null;
}

/** What was logged up to a time. Steps are logged one after the other, but for those of a process that resumed another. */
export const loggedUpTo = (lines: LoggedLines, until: number): LoggedLines =>
  new Map(
    [...lines].map(([label, points]) => {
      const first = points.t.findIndex((t) => t !== null && t > until);
      const count = first < 0 ? points.t.length : first;
      return [label, { ...points, ...firstOf(points, count), t: points.t.slice(0, count) }];
    }),
  );
