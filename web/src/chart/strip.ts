// A row of a strip below a chart: an area over the same axis.

import type { Value } from '../base/api';
import type { StripRow } from './chartModel';
import type { Points, Range } from './points';
import { shareOf, type Axis } from './xAxis';

/** Points to the left or right of the shown part of an axis that an area begins or ends at. */
const BEYOND = 1;

/** The outline of an area in pixels; a gap divides it. */
export function stripPath({ points: { x, y }, top }: StripRow, axis: Axis, range: Range, width: number, height: number): string {
  const { min, max } = range;
  const first = Math.max(0, x.findIndex((at) => at >= min) - BEYOND);
  const beyond = x.findIndex((at) => at > max);
  const last = beyond < 0 ? x.length - 1 : beyond;
  const texts: string[] = [];
  let begun: string | null = null;
  let end = '';
  for (let i = first; i <= last && first >= 0; i++) {
    const value = y[i];
    if (value === null || value === undefined) {
      if (begun !== null) texts.push(`${end}Z`);
      begun = null;
      continue;
    }
    const across = (Math.min(Math.max(shareOf(axis, range, x[i]!), 0), 1) * width).toFixed(1);
    const up = (height - (Math.min(Math.max(value / top, 0), 1) * height)).toFixed(1);
    if (begun === null) texts.push(`M${across},${height}`);
    begun ??= across;
    texts.push(`L${across},${up}`);
    end = `L${across},${height}`;
  }
  if (begun !== null) texts.push(`${end}Z`);
  return texts.join('');
}

/** The value of the point that is nearest to a place. */
export function valueAt({ x, y }: Pick<Points, 'x' | 'y'>, at: number): Value {
  let nearest = -1;
  x.forEach((position, i) => {
    if (nearest < 0 || Math.abs(position - at) < Math.abs(x[nearest]! - at)) nearest = i;
  });
  return nearest < 0 ? null : (y[nearest] ?? null);
}
