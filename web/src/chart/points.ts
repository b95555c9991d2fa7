// Points of series: from API responses and live samples to the aligned columns that a chart draws.

import type { Value } from '../base/api';
import type { Metrics } from '../base/wire';

/** A part of an axis. */
export interface Range {
  min: number;
  max: number;
}

/** One series: x ascending; null is a gap. `low`, `high` and `n` (its number of samples) are set if each value is a bucket. */
export interface Points {
  x: number[];
  y: Value[];
  low: Value[] | null;
  high: Value[] | null;
  n: number[] | null;
}

/** One series of a chart. */
export interface Line {
  /** The same for the same series at every visit: by it, a link hides and pins series. */
  id: string;
  label: string;
  /** Which colour of the palette it has, whatever else is drawn. */
  slot: number;
  /** Lines of the same colour are dashed differently. */
  dashed?: boolean;
  /** It is the mean of several: its band says more than its values before smoothing. */
  ofMany?: boolean;
  /** Where it has values that are not finite: NaN or infinite. */
  notFinite?: readonly number[];
  points: Points;
}

export const seriesId = (series: { host: string; role: string; key: string }): string => `${series.host}\n${series.role}\n${series.key}`;

/** The points of each series of a response, by `seriesId`. A bucket's value is drawn in its middle. */
export function fromMetrics(answer: Metrics): Map<string, Points> {
  const pointsOf = new Map<string, Points>();
  const half = (answer.bucket_ms ?? 0) / 2;
  for (const group of answer.groups) {
    const x = half ? group.t.map((t) => Math.min(t + half, answer.t1)) : group.t;
    for (const [key, y] of Object.entries(group.series)) {
      const low = group.min?.[key] ?? null;
      const high = group.max?.[key] ?? null;
      pointsOf.set(seriesId({ ...group, key }), { x: [...x], y, low, high, n: group.n && [...group.n] });
    }
  }
  return pointsOf;
}

/** The same points in another unit. */
export function scaled(points: Points, factor: number): Points {
  if (factor === 1) return points;
  const times = (values: Value[]): Value[] => values.map((value) => (value === null ? null : value * factor));
  const { x, n } = points;
  return { x, y: times(points.y), low: points.low && times(points.low), high: points.high && times(points.high), n };
}

/** Append a point, unless it is not newer than the last one. */
export function append(points: Points, x: number, y: Value): boolean {
  if (points.x.length > 0 && x <= points.x[points.x.length - 1]!) return false;
  points.x.push(x);
  points.y.push(y);
  points.low?.push(y);
  points.high?.push(y);
  points.n?.push(y === null ? 0 : 1);
  return true;
}

/** Where logged values are not finite. Of what was sampled, null is a gap. */
const notFiniteOf = ({ x, y }: Points): number[] => x.filter((_, i) => y[i] === null);

/** The points of a logged line, with the places of those that are not finite. */
export const withNotFinite = (points: Points): Pick<Line, 'points' | 'notFinite'> => ({ points, notFinite: notFiniteOf(points) });

/** How many values of some lines are finite: `40 of 50 finite`; empty if all are. */
export function finiteText(lines: readonly Line[]): string {
  const missing = lines.reduce((sum, { notFinite }) => sum + (notFinite?.length ?? 0), 0);
  if (missing === 0) return '';
  const all = lines.reduce((sum, { points, notFinite }) => sum + (notFinite ? points.x.length : 0), 0);
  const buckets = lines.some(({ points }) => points.n !== null);
  return buckets ? `not finite at ${missing} of ${all} points` : `${all - missing} of ${all} finite`;
}

/** The largest distance of two points that are connected; a line over a longer gap would suggest measured values. */
export function longestStep(x: readonly number[]): number {
  if (x.length < 3) return Infinity;
  const steps: number[] = [];
  const stride = Math.max(1, Math.floor(x.length / 200));
  for (let i = 1; i < x.length; i += stride) steps.push(x[i]! - x[i - 1]!);
  steps.sort((a, b) => a - b);
  return 4 * steps[Math.floor(steps.length / 2)]!;
}

export type Column = (number | null | undefined)[];

/** Columns over a common x for uPlot: null is a gap, undefined a time that only other series have. */
export interface Aligned {
  x: number[];
  columns: Column[];
}

/**
 * The columns of several series; each has a gap where its points are unusually far apart.
 *
 * `log`: points are further and further apart along a logarithmic axis, which is no gap.
 */
export function align(series: readonly { x: readonly number[]; columns: readonly (readonly Value[])[] }[], log = false): Aligned {
  const all = new Set<number>();
  const gaps = series.map((points) => (log ? [] : gapsOf(points.x)));
  series.forEach((points, i) => {
    for (const x of points.x) all.add(x);
    for (const x of gaps[i]!) all.add(x);
  });
  const x = Float64Array.from(all).sort();
  const indexOf = new Map<number, number>();
  x.forEach((value, i) => indexOf.set(value, i));
  const columns: Column[] = [];
  series.forEach((points, i) => {
    for (const values of points.columns) {
      const column: Column = new Array<undefined>(x.length).fill(undefined);
      for (const gap of gaps[i]!) column[indexOf.get(gap)!] = null;
      points.x.forEach((at, j) => (column[indexOf.get(at)!] = values[j] ?? null));
      columns.push(column);
    }
  });
  return { x: Array.from(x), columns };
}

function gapsOf(x: readonly number[]): number[] {
  const longest = longestStep(x);
  const gaps: number[] = [];
  for (let i = 1; i < x.length; i++) {
    if (x[i]! - x[i - 1]! > longest) gaps.push((x[i]! + x[i - 1]!) / 2);
  }
  return gaps;
}

/** Many series as one: lowest, mean and highest at each x where any has a value. */
export function spread(lines: readonly Line[]): Points {
  const { x, columns } = align(
    lines.map(({ points: { x, y, low, high } }) => ({ x, columns: [y, low ?? y, high ?? y] })),
  );
  const y: Value[] = [];
  const low: Value[] = [];
  const high: Value[] = [];
  for (let i = 0; i < x.length; i++) {
    let sum = 0;
    let n = 0;
    let min = Infinity;
    let max = -Infinity;
    for (let column = 0; column < columns.length; column += 3) {
      const value = columns[column]![i];
      if (value === null || value === undefined) continue;
      sum += value;
      n += 1;
      min = Math.min(min, columns[column + 1]![i] ?? value);
      max = Math.max(max, columns[column + 2]![i] ?? value);
    }
    y.push(n ? sum / n : null);
    low.push(n ? min : null);
    high.push(n ? max : null);
  }
  return { x, y, low, high, n: null };
}

/** Several lines as their sum. A line without a value keeps its last one: a counter has not gone back. */
export function summed(lines: readonly Line[]): Points {
  const { x, columns } = align(lines.map(({ points: { x, y } }) => ({ x, columns: [y] })));
  const last = columns.map((): number => 0);
  const y = x.map((_, i) => {
    columns.forEach((column, k) => (last[k] = column[i] ?? last[k]!));
    return last.reduce((sum, value) => sum + value, 0);
  });
  return { x, y, low: null, high: null, n: null };
}

/** How many of these, in ascending order, are at most a limit. */
export function countUpTo(ascending: readonly number[], limit: number): number {
  let [low, high] = [0, ascending.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ascending[middle]! <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The first of some points. */
export const firstOf = ({ x, y, low, high, n }: Points, count: number): Points => ({
  x: x.slice(0, count),
  y: y.slice(0, count),
  low: low && low.slice(0, count),
  high: high && high.slice(0, count),
  n: n && n.slice(0, count),
});

export const upTo = (points: Points, x: number): Points => firstOf(points, countUpTo(points.x, x));
