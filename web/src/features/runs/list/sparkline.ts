// A small line without axes.

import type { Value } from '../../../base/api';

export interface SmallLine {
  /** The `d` of an SVG path. */
  path: string;
  first: number;
  last: number;
  low: number;
  high: number;
}

const MARGIN = 2;

/** A line through the values, from the left edge to the right; null if there is no value. */
export function sparklinePath(values: readonly Value[], width: number, height: number): SmallLine | null {
  const known = values.filter((value): value is number => value !== null && Number.isFinite(value));
  if (known.length === 0) return null;
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const step = values.length > 1 ? (width - 2 * MARGIN) / (values.length - 1) : 0;
  const y = (value: number): number => (high === low ? height / 2 : height - MARGIN - ((value - low) / (high - low)) * (height - 2 * MARGIN));
  let path = '';
  let joined = false;
  values.forEach((value, i) => {
    if (value === null || !Number.isFinite(value)) {
      joined = false;
      return;
    }
    const place = `${(MARGIN + i * step).toFixed(1)} ${y(value).toFixed(1)}`;
    const alone = !joined && values[i + 1] === null;
    path += `${joined ? 'L' : 'M'}${place}${alone || values.length === 1 ? `L${place}` : ''}`;
    joined = true;
  });
  return { path, first: known[0]!, last: known[known.length - 1]!, low, high };
}
