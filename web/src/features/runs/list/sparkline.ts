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
  const numbers = values.filter((value): value is number => value !== null && Number.isFinite(value));
  if (numbers.length === 0) return null;
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  const step = values.length > 1 ? (width - 2 * MARGIN) / (values.length - 1) : 0;
  const y = (value: number): number => (high === low ? height / 2 : height - MARGIN - ((value - low) / (high - low)) * (height - 2 * MARGIN));
  let path = '';
  let joined = false;
  values.forEach((value, i) => {
    if (value === null || !Number.isFinite(value)) {
      joined = false;
      return;
    }
    const point = `${(MARGIN + i * step).toFixed(1)} ${y(value).toFixed(1)}`;
    const alone = !joined && values[i + 1] === null;
    path += `${joined ? 'L' : 'M'}${point}${alone || values.length === 1 ? `L${point}` : ''}`;
    joined = true;
  });
  return { path, first: numbers[0]!, last: numbers[numbers.length - 1]!, low, high };
}
