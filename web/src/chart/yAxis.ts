// The y axis of a chart: its range and its ticks.

import { formatTicks, formatValue, valueRange, valueTicks } from '../base/units';
import type { Value } from '../base/api';
import { withoutOutliers } from './summary';
import type { YScale } from './viewState';

export interface YAxis {
  scale: YScale;
  outliersAside: boolean;
  unit: string;
  /** Of a logarithmic axis with negatives: values closer to zero than this are drawn as on a linear one. */
  threshold?: number;
}

const MAX_DECADES = 6;

/** The power of ten below the value that is closest to zero, at most six decades below the one that is farthest from it. */
export function thresholdOf(values: Iterable<Value | undefined>): number {
  let [low, high] = [Infinity, 0];
  for (const value of values) {
    const size = Math.abs(value ?? 0);
    if (size === 0) continue;
    low = Math.min(low, size);
    high = Math.max(high, size);
  }
  return high === 0 ? 1 : 10 ** Math.floor(Math.log10(Math.max(low, high / 10 ** MAX_DECADES)));
}

/**
 * The range of the axis.
 *
 * `low` and `high` are the extremes of what is shown, `values` all of it.
 */
export const rangeOf = (y: YAxis, low: number | null, high: number | null, values: () => number[]): [number, number] => drawable(wantedRange(y, low, high, values));

function wantedRange({ scale, outliersAside, unit, threshold = 1 }: YAxis, low: number | null, high: number | null, values: () => number[]): [number, number] {
  if (scale === 'percent') return [0, 100];
  if (scale === 'log') return logRange(values(), outliersAside);
  if (scale === 'symlog') return symlogRange(values(), threshold, outliersAside);
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

function symlogRange(values: readonly number[], threshold: number, outliersAside: boolean): [number, number] {
  const levels = values.map((value) => Math.asinh(value / threshold));
  if (levels.length === 0) return [-threshold, threshold];
  const [low, high] = (outliersAside && withoutOutliers(levels)) || extremes(levels);
  const margin = Math.max((high - low) * 0.05, 0.05);
  return [threshold * Math.sinh(low - margin), threshold * Math.sinh(high + margin)];
}

const extremes = (values: readonly number[]): [number, number] => [
  values.reduce((a, b) => Math.min(a, b)),
  values.reduce((a, b) => Math.max(a, b)),
];

export function yTicks({ scale, unit, threshold = 1 }: YAxis, min: number, max: number, count: number): number[] {
  if (scale === 'symlog') return symlogTicks(min, max, count, threshold);
  return scale === 'log' ? logTicks(min, max, count) : valueTicks(min, max, count, unit);
}

/** What is proportional to the height at which a value is drawn. */
export function levelOf({ scale, threshold = 1 }: YAxis): (value: number) => number {
  if (scale === 'log') return Math.log10;
  return scale === 'symlog' ? (value) => Math.asinh(value / threshold) : (value) => value;
}

const isLog = (scale: YScale): boolean => scale === 'log' || scale === 'symlog';

/** Zero, and powers of ten on both sides of it. */
function symlogTicks(min: number, max: number, count: number, threshold: number): number[] {
  const last = Math.ceil(Math.log10(Math.max(Math.abs(min), Math.abs(max), threshold)));
  const first = Math.round(Math.log10(threshold));
  const stride = Math.max(1, Math.ceil(((last - first + 1) * (min < 0 && max > 0 ? 2 : 1)) / Math.max(1, count - 1)));
  const powers: number[] = [];
  for (let power = last; power >= first; power -= stride) powers.push(10 ** power);
  const ticks = [...powers.map((power) => -power), 0, ...powers.reverse()].filter((tick) => tick >= min && tick <= max);
  return ticks.length >= 2 ? ticks : valueTicks(min, max, count, '');
}

export const yLabels = ({ scale, unit }: YAxis, ticks: readonly number[]): string[] =>
  isLog(scale) ? ticks.map((tick) => formatValue(tick, unit)) : formatTicks(ticks, unit);

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
