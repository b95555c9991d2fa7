// The x axis of a chart: what it counts, its ticks, and how a place on it is written.

import {
  elapsedTicks,
  formatDuration,
  formatElapsed,
  formatElapsedTicks,
  formatLogElapsedTicks,
  formatMoment,
  formatStepTicks,
  formatWallTicks,
  logElapsedTicks,
  stepTicks,
  wallTicks,
} from '../base/time';
import { formatTicks, formatValue, valueTicks } from '../base/units';
import { countUpTo, type Points, type Range } from './points';
import { yLabels, yTicks, type YAxis } from './yAxis';

const LOG: YAxis = { scale: 'log', outliersAside: false, unit: '' };

/** What the x axis counts: time since the start, time of day, steps of training, or the values of a logged metric. */
export type Axis = ({ kind: 'elapsed'; start: number } | { kind: 'wall' } | { kind: 'step' } | { kind: 'metric'; name: string }) & {
  /** Logarithmic: what is beyond the zero of the axis. A time of day has none. */
  log?: boolean;
};

/** Where the axis begins to count. */
export const zeroOf = (axis: Axis): number => (axis.kind === 'elapsed' ? axis.start : 0);

/** What is proportional to the distance at which a value is drawn. */
export function levelOf(axis: Axis): (x: number) => number {
  if (!axis.log) return (x) => x;
  const zero = zeroOf(axis);
  return (x) => Math.log10(Math.max(x - zero, Number.MIN_VALUE));
}

/** The value at a level. */
export function atLevel(axis: Axis): (level: number) => number {
  if (!axis.log) return (level) => level;
  const zero = zeroOf(axis);
  return (level) => zero + 10 ** level;
}

/** Where a value is in a range, from 0 to 1. */
export function shareOf(axis: Axis, { min, max }: Range, x: number): number {
  const level = levelOf(axis);
  return (level(x) - level(min)) / (level(max) - level(min));
}

/** The value at a share of a range, also outside it. */
export function valueAtShare(axis: Axis, { min, max }: Range, share: number): number {
  const [low, high] = [min, max].map(levelOf(axis)) as [number, number];
  return atLevel(axis)(low + share * (high - low));
}

/** The first second, or step, that a logarithmic axis has. */
const FIRST = { elapsed: 1000, wall: 1, step: 1, metric: 1 };

/** A range without what a logarithmic axis has no place for. */
export function drawableOn(axis: Axis, range: Range): Range {
  const zero = zeroOf(axis);
  if (!axis.log || range.min > zero) return range;
  const first = FIRST[axis.kind];
  return range.max > zero ? { min: zero + Math.min(first, (range.max - zero) / 100), max: range.max } : { min: zero + first, max: zero + 10 * first };
}

/** Points without those that a logarithmic axis has no place for. */
export function pointsOn(axis: Axis, points: Points): Points {
  if (!axis.log || points.x.length === 0 || points.x[0]! > zeroOf(axis)) return points;
  const first = countUpTo(points.x, zeroOf(axis));
  const { x, y, low, high, n } = points;
  return { x: x.slice(first), y: y.slice(first), low: low && low.slice(first), high: high && high.slice(first), n: n && n.slice(first) };
}

/** A part of a range, between two shares. */
export const partOf = (axis: Axis, range: Range, from: number, to: number): Range => ({ min: valueAtShare(axis, range, from), max: valueAtShare(axis, range, to) });

export const isTime = (axis: Axis): boolean => axis.kind === 'elapsed' || axis.kind === 'wall';

/** At most about `count` ticks at round places. */
export function ticksOf(axis: Axis, min: number, max: number, count: number): number[] {
  if (axis.kind === 'elapsed') return axis.log ? logElapsedTicks(min, max, count, axis.start) : elapsedTicks(min, max, count, axis.start);
  if (axis.kind === 'wall') return wallTicks(min, max, count);
  if (axis.log) return yTicks(LOG, min, max, count);
  return axis.kind === 'step' ? stepTicks(min, max, count) : valueTicks(min, max, count, '');
}

export function labelsOf(axis: Axis, ticks: number[]): string[] {
  if (axis.kind === 'elapsed') return axis.log ? formatLogElapsedTicks(ticks, axis.start) : formatElapsedTicks(ticks, axis.start);
  if (axis.kind === 'wall') return formatWallTicks(ticks);
  if (axis.log) return yLabels(LOG, ticks);
  return axis.kind === 'step' ? formatStepTicks(ticks) : formatTicks(ticks, '');
}

/** A place on the axis in words. */
export function whereText(axis: Axis, x: number): string {
  if (axis.kind === 'elapsed') return formatElapsed(x - axis.start);
  if (axis.kind === 'wall') return formatMoment(x);
  return axis.kind === 'step' ? `step ${Math.round(x)}` : `${axis.name} ${formatValue(x, '')}`;
}

/** How long a share of the axis is, in percent of it: `1 min 12 s`, `40 steps`. */
export function shareText(axis: Axis, range: { min: number; max: number }, share: number): string {
  if (axis.log) return `${share} % of the axis`;
  const width = ((range.max - range.min) * share) / 100;
  if (isTime(axis)) return formatDuration(width);
  const text = formatValue(width, '');
  return axis.kind === 'metric' ? `${text} of ${axis.name}` : `${text} steps`;
}
