// Which of many lines are near the pointer.

import type { Value } from '../base/api';
import type { Drawn } from './drawn';

export interface Near {
  label: string;
  color: string;
  value: number;
  /** The nearest of all. */
  first: boolean;
}

/** A line that ended further than this share of the axis before the crosshair has no value there. */
const REACH = 0.03;

/**
 * The lines that are nearest to the pointer, from the highest value to the lowest.
 *
 * `values`: of each line at the crosshair; `span`: the width of the x axis.
 */
export function nearest(lines: readonly Drawn[], values: readonly Value[], at: { x: number; y: number }, span: number, most: number): Near[] {
  const reach = span * REACH;
  const nearestLines = lines.flatMap(({ label, color, points: { x } }, i): Near[] => {
    const value = values[i];
    const isThere = x.length > 0 && at.x >= x[0]! - reach && at.x <= x[x.length - 1]! + reach;
    return typeof value === 'number' && isThere ? [{ label, color, value, first: false }] : [];
  });
  nearestLines.sort((a, b) => Math.abs(a.value - at.y) - Math.abs(b.value - at.y));
  if (nearestLines[0]) nearestLines[0].first = true;
  return nearestLines.slice(0, most).sort((a, b) => b.value - a.value);
}
