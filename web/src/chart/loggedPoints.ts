// Points that a run logged, and the axis that they are drawn over.

import type { LoggedRow, Value } from '../base/api';
import { append, firstOf, type Points } from './points';
import type { Logged, Resume } from '../base/wire';

/** Values by step; `t` is when each was logged, in ms UTC. */
export interface LoggedPoints extends Points {
  t: Value[];
  /** Of each time that the training went back to an earlier step: what was logged before of the steps that it repeated. */
  replaced?: LoggedPoints[];
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
  const linesByKey = new Map<string, LoggedLines>();
  for (const group of answer.groups) {
    for (const [name, y] of Object.entries(group.series)) {
      const lines: LoggedLines = linesByKey.get(name) ?? new Map();
      linesByKey.set(name, lines);
      const points: LoggedPoints = {
        x: [...group.step],
        y,
        low: group.min?.[name] ?? null,
        high: group.max?.[name] ?? null,
        n: group.n && [...group.n],
        t: [...group.t],
      };
      const label = processLabel(group);
      const { host, rank } = group;
      const line = lines.get(label) ?? { x: [], y: [], low: null, high: null, n: null, t: [], host, rank };
      if (group.replaced) lines.set(label, { ...line, replaced: [...(line.replaced ?? []), points] });
      else lines.set(label, { ...line, ...points });
    }
  }
  return linesByKey;
}

/** The restarts that several answers tell of: each name tells when one was only as exactly as it was logged. */
export function mergedResumes(resumes: readonly Resume[]): Resume[] {
  const merged: Resume[] = [];
  for (const resume of [...resumes].sort((a, b) => a.t - b.t)) {
    const last = merged[merged.length - 1];
    if (!last || resume.after_t >= last.t) {
      merged.push({ ...resume });
      continue;
    }
    if (resume.after_t > last.after_t) Object.assign(last, { after_t: resume.after_t, after_step: resume.after_step });
    last.step = Math.min(last.step, resume.step);
  }
  return merged;
}

/** Append a row's value; false if its step is not newer than the last one. */
export function appendRow(points: LoggedPoints, row: LoggedRow, value: Value): boolean {
  const isNewer = append(points, row.step, value);
  if (isNewer) points.t.push(row.t);
  return isNewer;
}

/** The same points over the time at which they were logged, with those of steps that were repeated later. */
export function byTime(points: LoggedPoints): Points {
  const all = (points.replaced ?? []).reduce(joined, points);
  return over(all, all.t);
}

/** Points and others; of a value that is no bucket, its extremes are itself. */
function joined(before: LoggedPoints, after: LoggedPoints): LoggedPoints {
  const extremes = (a: Value[] | null, b: Value[] | null): Value[] | null => (a || b ? [...(a ?? before.y), ...(b ?? after.y)] : null);
  const countsOf = ({ n, x }: LoggedPoints): number[] => n ?? x.map(() => 1);
  return {
    x: [...before.x, ...after.x],
    y: [...before.y, ...after.y],
    low: extremes(before.low, after.low),
    high: extremes(before.high, after.high),
    n: before.n || after.n ? [...countsOf(before), ...countsOf(after)] : null,
    t: [...before.t, ...after.t],
  };
}

/** The same points over the values of another metric that the same process logged at the same steps. */
export const byMetric = (points: LoggedPoints, other: LoggedPoints | undefined): Points => over(points, valuesAt(points, other));

/** The values of another metric at the steps of some points; null where it has none. */
export function valuesAt(points: LoggedPoints, other: LoggedPoints | undefined): Value[] {
  const values = new Map(other?.x.map((step, i) => [step, other.y[i] ?? null]));
  return points.x.map((step) => values.get(step) ?? null);
}

/** Points in ascending order of another x, without those that have none. */
function over({ y, low, high, n }: Points, x: readonly Value[]): Points {
  const order = [...x.keys()].filter((i) => x[i] !== null).sort((a, b) => x[a]! - x[b]!);
  const sorted = <T>(values: readonly T[]): T[] => order.map((i) => values[i]!);
  return { x: order.map((i) => x[i]!), y: sorted(y), low: low && sorted(low), high: high && sorted(high), n: n && sorted(n) };
}

/** What was logged up to a time; of steps that were repeated after it, what was logged before. */
export const loggedUpTo = (lines: LoggedLines, until: number): LoggedLines =>
  new Map([...lines].map(([label, { host, rank, ...points }]) => [label, { ...pointsUpTo(points, until), host, rank }]));

function pointsUpTo({ replaced = [], ...points }: LoggedPoints, until: number): LoggedPoints {
  const first = points.t.findIndex((t) => t !== null && t > until);
  const count = first < 0 ? points.t.length : first;
  let line: LoggedPoints = { ...firstOf(points, count), t: points.t.slice(0, count) };
  const gone: LoggedPoints[] = [];
  for (const piece of replaced.map((points) => pointsUpTo(points, until)).filter(({ x }) => x.length > 0)) {
    const goesOn = piece.x[0]! > (line.x.at(-1) ?? -Infinity) && piece.t[0]! >= (line.t.at(-1) ?? -Infinity);
    if (goesOn) line = joined(line, piece);
    else gone.push(piece);
  }
  return gone.length > 0 ? { ...line, replaced: gone } : line;
}
