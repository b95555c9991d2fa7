// A heatmap: a row for each line, a column for each part of the x axis, the mean of the points in it as the value.

import { type Line, longestStep, type Range } from './points';
import { shareOf, type Axis } from './xAxis';
import { outlierScores, withoutOutliers } from './summary';

export interface Heatmap {
  rows: readonly Line[];
  columns: number;
  /** Row after row; NaN where nothing is known. */
  values: Float64Array;
  /** The values that have the first and the last colour. */
  low: number;
  high: number;
}

export type RowOrder = 'name' | 'outlier';

/** The rows in order: as given, or those first that are farthest from the others. */
export function ordered(lines: readonly Line[], order: RowOrder): Line[] {
  if (order === 'name') return [...lines];
  const scores = outlierScores(lines);
  return [...lines.keys()].sort((a, b) => scores[b]! - scores[a]!).map((i) => lines[i]!);
}

export function heatmap(rows: readonly Line[], axis: Axis, range: Range, columns: number, unit: string, outliersAside: boolean): Heatmap {
  const values = new Float64Array(rows.length * columns).fill(NaN);
  rows.forEach((row, i) => fill(values.subarray(i * columns, (i + 1) * columns), row, axis, range));
  const [low, high] = colorRange(values, unit, outliersAside);
  return { rows, columns, values, low, high };
}

/** A column without a point of its own has the value before it, unless that is too long ago: along a logarithmic axis, up to the last point. */
function fill(row: Float64Array, { points: { x, y, n } }: Line, axis: Axis, range: Range): void {
  const width = (range.max - range.min) / row.length;
  const longest = longestStep(x) / 2;
  const counts = new Float64Array(row.length);
  const sums = new Float64Array(row.length);
  x.forEach((at, i) => {
    const value = y[i];
    const column = at === range.max ? row.length - 1 : Math.floor(shareOf(axis, range, at) * row.length);
    if (value === null || value === undefined || column < 0 || column >= row.length) return;
    const of = n?.[i] || 1;
    sums[column]! += of * value;
    counts[column]! += of;
  });
  const end = axis.log ? counts.findLastIndex((count) => count > 0) : -1;
  let last = -1;
  for (let column = 0; column < row.length; column++) {
    if (counts[column]! > 0) {
      row[column] = sums[column]! / counts[column]!;
      last = column;
    } else if (last >= 0 && (column < end || (!axis.log && (column - last) * width <= longest))) {
      row[column] = row[last]!;
    }
  }
}

function colorRange(values: Float64Array, unit: string, outliersAside: boolean): [number, number] {
  const numbers = [...values].filter((value) => !Number.isNaN(value));
  if (numbers.length === 0) return [0, 1];
  const extremes: [number, number] = [numbers.reduce((a, b) => Math.min(a, b)), numbers.reduce((a, b) => Math.max(a, b))];
  if (unit === '%' && extremes[0] >= 0 && extremes[1] <= 100) return [0, 100];
  const [low, high] = (outliersAside && withoutOutliers(numbers)) || extremes;
  return high > low ? [low, high] : [low, low + 1];
}

/** Dark blue to yellow, evenly brighter, for any colour vision. */
const STOPS: readonly (readonly [number, number, number])[] = [
  [68, 1, 84],
  [65, 68, 135],
  [42, 120, 142],
  [34, 168, 132],
  [122, 209, 81],
  [253, 231, 37],
];

export function heatColor(value: number, low: number, high: number): [number, number, number] {
  const position = Math.max(0, Math.min(1, (value - low) / (high - low))) * (STOPS.length - 1);
  const stop = Math.min(STOPS.length - 2, Math.floor(position));
  const [from, to] = [STOPS[stop]!, STOPS[stop + 1]!];
  return [0, 1, 2].map((i) => Math.round(from[i]! + (to[i]! - from[i]!) * (position - stop))) as [number, number, number];
}
