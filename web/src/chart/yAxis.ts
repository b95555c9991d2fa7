// The y axis of a chart: its range and its ticks.

import { formatTicks, formatValue, valueRange, valueTicks } from '../base/units';
import { withoutOutliers } from './summary';
import type { YScale } from './viewState';

export interface YAxis {
  scale: YScale;
  outliersAside: boolean;
  unit: string;
}

/**
 * The range of the axis.
 *
 * `low` and `high` are the extremes of what is shown, `values` all of it.
 */
export const rangeOf = (y: YAxis, low: number | null, high: number | null, values: () => number[]): [number, number] => drawable(wantedRange(y, low, high, values));

function wantedRange({ scale, outliersAside, unit }: YAxis, low: number | null, high: number | null, values: () => number[]): [number, number] {
  if (scale === 'percent') return [0, 100];
  if (scale === 'log') return logRange(values(), outliersAside);
  const central = outliersAside ? withoutOutliers(values()) : null;
  const [from, to] = central ?? [low, high];
  if (scale === 'auto' || from === null || to === null) return valueRange(from, to, unit);
  const margin = (to - from || Math.abs(to) || 1) * 0.05;
  return [from - margin, to + margin];
}

/** A range whose ends and length are numbers: of values up to 1.8e308 they may not be. */
function drawable([from, to]: [number, number]): [number, number] {
  const [low, high] = [Math.max(from, -Number.MAX_VALUE), Math.min(to, Number.MAX_VALUE)];
  return Number.isFinite(high - low) ? [low, high] : [Math.max(low, -Number.MAX_VALUE / 2), Math.min(high, Number.MAX_VALUE / 2)];
}

function logRange(values: readonly number[], outliersAside: boolean): [number, number] {
  const powers = values.filter((value) => value > 0).map(Math.log10);
  if (powers.length === 0) return [1, 10];
  const [low, high] = (outliersAside && withoutOutliers(powers)) || extremes(powers);
  const margin = Math.max((high - low) * 0.05, 0.02);
  return [10 ** (low - margin), 10 ** (high + margin)];
}

const extremes = (values: readonly number[]): [number, number] => [
  values.reduce((a, b) => Math.min(a, b)),
  values.reduce((a, b) => Math.max(a, b)),
];

export function yTicks({ scale, unit }: YAxis, min: number, max: number, count: number): number[] {
  return scale === 'log' ? logTicks(min, max, count) : valueTicks(min, max, count, unit);
}

export const yLabels = ({ scale, unit }: YAxis, ticks: readonly number[]): string[] =>
  scale === 'log' ? ticks.map((tick) => formatValue(tick, unit)) : formatTicks(ticks, unit);

/** Powers of ten; where those are few, also 2 and 5 times them. */
function logTicks(min: number, max: number, count: number): number[] {
  const [first, last] = [Math.floor(Math.log10(min)), Math.ceil(Math.log10(max))];
  const stride = Math.max(1, Math.ceil((last - first) / Math.max(1, count)));
  const between = Math.log10(max / min) * 3 <= count + 2 ? [1, 2, 5] : [1];
  const ticks: number[] = [];
  for (let power = Math.ceil(first / stride) * stride; power <= last; power += stride) {
    for (const factor of between) ticks.push(factor * 10 ** power);
  }
  const inside = ticks.filter((tick) => tick >= min * (1 - 1e-9) && tick <= max * (1 + 1e-9));
  return inside.length >= 2 ? inside : [min, max];
}
