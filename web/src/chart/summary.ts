// Numbers about the points of a chart: its legend, its outliers.

import type { Value } from '../base/api';
import type { Line, Points } from './points';

export interface Summary {
  last: Value;
  min: Value;
  mean: Value;
  max: Value;
}

/** Last, lowest, mean and highest of the points from `min` to `max`. A bucket counts as the samples in it. */
export function summary({ x, y, low, high, n }: Points, range: { min: number; max: number }): Summary {
  const summary: Summary = { last: null, min: null, mean: null, max: null };
  let sum = 0;
  let count = 0;
  for (let i = 0; i < x.length; i++) {
    const value = y[i];
    if (value === null || value === undefined || x[i]! < range.min || x[i]! > range.max) continue;
    const of = n?.[i] ?? 1;
    sum += value * of;
    count += of;
    summary.last = value;
    summary.min = Math.min(summary.min ?? Infinity, low?.[i] ?? value);
    summary.max = Math.max(summary.max ?? -Infinity, high?.[i] ?? value);
  }
  if (count > 0) summary.mean = sum / count;
  return summary;
}

const FENCE = 3;

/** The extremes without outliers: values more than 3 interquartile ranges below the first or above the third quartile. */
export function withoutOutliers(values: readonly number[]): [number, number] | null {
  if (values.length === 0) return null;
  const sorted = Float64Array.from(values).sort();
  const extent: [number, number] = [sorted[0]!, sorted[sorted.length - 1]!];
  const [first, third] = [quantile(sorted, 0.25), quantile(sorted, 0.75)];
  const reach = FENCE * (third - first);
  if (reach === 0) return extent;
  const kept = sorted.filter((value) => value >= first - reach && value <= third + reach);
  return [kept[0]!, kept[kept.length - 1]!];
}

/** A quantile of ascending values, interpolated linearly. */
export function quantile(sorted: ArrayLike<number>, share: number): number {
  const position = (sorted.length - 1) * share;
  const [low, high] = [sorted[Math.floor(position)]!, sorted[Math.ceil(position)]!];
  return low + (high - low) * (position - Math.floor(position));
}

const median = (values: readonly number[]): number => quantile(Float64Array.from(values).sort(), 0.5);

/** How far the median of each line is from the median of all, in units of their spread (MAD × 1.4826, at least 1 % of their range). */
export function outlierScores(lines: readonly Line[]): number[] {
  const medians = lines.map(({ points }) => {
    const values = points.y.filter((value) => value !== null && value !== undefined);
    return values.length ? median(values) : null;
  });
  const numbers = medians.filter((value) => value !== null);
  if (numbers.length === 0) return lines.map(() => 0);
  const middle = median(numbers);
  const range = Math.max(...numbers) - Math.min(...numbers);
  const spread = Math.max(1.4826 * median(numbers.map((value) => Math.abs(value - middle))), range / 100);
  return medians.map((value) => (value === null || spread === 0 ? 0 : Math.abs(value - middle) / spread));
}

/** A line this far away from the others is drawn beside their band. */
export const OUTLIER_SCORE = 3;
