// Numbers of panels: the statistic of each line, percentiles over lines, the bins of a histogram.

import { quantile, summary } from '../../../chart/summary';
import type { Value } from '../../../base/api';
import type { Points } from '../../../chart/points';
import { valuesAt } from './combined';
import type { Statistic } from './layout';

const EVERYWHERE = { min: -Infinity, max: Infinity };

/** A statistic of all points. A bucket counts as the samples in it. */
export const statisticOf = (points: Points, statistic: Statistic): Value => summary(points, EVERYWHERE)[statistic];

/** One number of the statistics of several lines: the extreme of extremes, otherwise their mean. */
export function acrossOf(values: readonly number[], statistic: Statistic): Value {
  if (values.length === 0) return null;
  if (statistic === 'min' || statistic === 'max') return values.reduce((a, b) => Math[statistic](a, b));
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Lines of percentiles: at each x, of the values that the lines have there. */
export function percentiles(lines: readonly Points[], shares: readonly number[]): Points[] {
  const grid = [...new Set(lines.flatMap(({ x }) => x))].sort((a, b) => a - b);
  const columns = lines.map((line) => valuesAt(line, grid));
  const sorted = grid.map((_, i) => Float64Array.from(columns.map((column) => column[i]!).filter((value) => value !== null)).sort());
  return shares.map((share) => ({
    x: grid,
    y: sorted.map((values) => (values.length > 0 ? quantile(values, share / 100) : null)),
    low: null,
    high: null,
    n: null,
  }));
}

/** Points of two lines at the same x, as pairs: at each x of the one with fewer points. */
export function pairs(across: Points, up: Points): { x: number; y: number }[] {
  const grid = across.x.length <= up.x.length ? across.x : up.x;
  const [xs, ys] = [valuesAt(across, grid), valuesAt(up, grid)];
  return grid.flatMap((_, i) => (xs[i] !== null && ys[i] !== null ? [{ x: xs[i]!, y: ys[i]! }] : []));
}

export interface Bins {
  min: number;
  width: number;
  /** By line, how many values are in each bin. */
  counts: number[][];
}

const MAX_BINS = 30;

/** Bins of equal width for the values of each line; null if there are none. A bucket counts as the samples in it. */
export function bins(lines: readonly { values: readonly number[]; weights: readonly number[] | null }[]): Bins | null {
  let [min, max, count] = [Infinity, -Infinity, 0];
  for (const { values } of lines) {
    for (const value of values) {
      min = Math.min(min, value);
      max = Math.max(max, value);
    }
    count += values.length;
  }
  if (count === 0) return null;
  const number = max > min ? Math.min(MAX_BINS, Math.max(5, Math.ceil(Math.sqrt(count)))) : 1;
  const width = max > min ? (max - min) / number : Math.abs(max) || 1;
  const counts = lines.map(({ values, weights }) => {
    const counts = new Array<number>(number).fill(0);
    values.forEach((value, i) => {
      const bin = Math.min(number - 1, Math.floor((value - min) / width));
      counts[bin]! += weights?.[i] ?? 1;
    });
    return counts;
  });
  return { min: max > min ? min : min - width / 2, width, counts };
}

/** The values of a line that are not gaps, with how many samples each stands for. */
export function valuesOf({ y, n }: Points): { values: number[]; weights: number[] | null } {
  const indexes = [...y.keys()].filter((i) => y[i] !== null && y[i] !== undefined);
  return { values: indexes.map((i) => y[i]!), weights: n && indexes.map((i) => n[i]!) };
}
