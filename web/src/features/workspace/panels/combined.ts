// The points of an expression from the points of its metrics.

import { longestStep, type Points } from '../../../chart/points';
import type { Value } from '../../../base/api';
import type { Expression } from './expression';

/**
 * The points of an expression of one run or device. `points` are those of its metrics, in their order.
 *
 * An expression that is one metric has its points. Otherwise it has a value at each x of the metric with the fewest
 * points, or the first of those. Another metric has there the value of its last point that is not after it. That point
 * counts as long as a chart connects points: for 4 times the usual distance of the metric's points; then it is a gap.
 * Where points are means of buckets, the result is computed from the means.
 */
export function combined(expression: Expression, points: readonly Points[]): Points {
  if (expression.plain) return points[0]!;
  const grid = points.reduce((fewest, curve) => (curve.x.length < fewest.x.length ? curve : fewest)).x;
  const columns = points.map((curve) => valuesAt(curve, grid));
  const y = grid.map((_, i) => expression.value(columns.map((column) => column[i]!)));
  return { x: [...grid], y, low: null, high: null, n: null };
}

/** The value of the last point that is not after each x of a grid; null where there is none, or it is too long ago. */
export function valuesAt({ x, y }: Points, grid: readonly number[]): Value[] {
  const longest = longestStep(x);
  let last = -1;
  return grid.map((at) => {
    while (last + 1 < x.length && x[last + 1]! <= at) last += 1;
    return last < 0 || at - x[last]! > longest ? null : (y[last] ?? null);
  });
}
