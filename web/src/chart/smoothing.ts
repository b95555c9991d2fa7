// Smoothing of a line. All kinds count distances in x, not in points, so that irregular samples and gaps are treated right.

import type { Value } from '../base/api';

export const SMOOTHING_KINDS = ['ema', 'gaussian', 'mean'] as const;
export type SmoothingKind = (typeof SMOOTHING_KINDS)[number];

export const SMOOTHING_NAMES: Record<SmoothingKind, string> = {
  ema: 'Exponential average',
  gaussian: 'Gaussian',
  mean: 'Running average',
};

/** `width`, in units of x: the time constant of an exponential average, σ of a Gaussian, the window of a running average. */
export interface Smoothing {
  kind: SmoothingKind;
  width: number;
}

const KERNEL_WIDTHS = 3;

/** The smoothed values at the same x; a gap stays a gap. `x` is ascending. */
export function smoothed(x: readonly number[], y: readonly Value[], { kind, width }: Smoothing): Value[] {
  if (!(width > 0)) return [...y];
  if (kind === 'ema') return exponential(x, y, width);
  if (kind === 'mean') return weighted(x, y, width / 2, () => 1);
  return weighted(x, y, KERNEL_WIDTHS * width, (distance) => Math.exp(-0.5 * (distance / width) ** 2));
}

/** An earlier value counts e^(−distance ÷ width): less the longer ago it is, however many points are between. */
function exponential(x: readonly number[], y: readonly Value[], width: number): Value[] {
  let level: number | null = null;
  let at = 0;
  return y.map((value, i) => {
    if (value === null || value === undefined) return null;
    const kept: number = level === null ? 0 : Math.exp(-(x[i]! - at) / width);
    level = level === null ? value : kept * level + (1 - kept) * value;
    at = x[i]!;
    return level;
  });
}

/** The mean of the values at most `reach` away, each with the weight of its distance. */
function weighted(x: readonly number[], y: readonly Value[], reach: number, weight: (distance: number) => number): Value[] {
  let first = 0;
  return y.map((value, i) => {
    if (value === null || value === undefined) return null;
    while (x[i]! - x[first]! > reach) first++;
    let sum = 0;
    let total = 0;
    for (let j = first; j < x.length && x[j]! - x[i]! <= reach; j++) {
      const near = y[j];
      if (near === null || near === undefined) continue;
      const by = weight(x[j]! - x[i]!);
      sum += by * near;
      total += by;
    }
    return sum / total;
  });
}
