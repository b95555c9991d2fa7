// The x axis of a chart: what it counts, its ticks, and how a place on it is written.

import {
  elapsedTicks,
  formatDuration,
  formatElapsed,
  formatElapsedTicks,
  formatMoment,
  formatStepTicks,
  formatWallTicks,
  stepTicks,
  wallTicks,
} from '../base/time';
import { formatTicks, formatValue, valueTicks } from '../base/units';
import type { Range } from './points';
import { yLabels, yTicks, type YAxis } from './yAxis';

const LOG: YAxis = { scale: 'log', outliersAside: false, unit: '' };

/** What the x axis counts: time since the start, time of day, steps of training, or the values of a logged metric. */
export type Axis = ({ kind: 'elapsed'; start: number } | { kind: 'wall' } | { kind: 'step' } | { kind: 'metric'; name: string }) & {
  /** Logarithmic: only of steps and metrics, and of positive ones. */
  log?: boolean;
};

/** Where a value is in a range, from 0 to 1. */
export const shareOf = ({ log }: Axis, { min, max }: Range, x: number): number =>
  log ? Math.log(x / min) / Math.log(max / min) : (x - min) / (max - min);

/** The value at a share of a range, also outside it. */
export const valueAtShare = ({ log }: Axis, { min, max }: Range, share: number): number =>
  log ? min * (max / min) ** share : min + share * (max - min);

/** A part of a range, between two shares. */
export const partOf = (axis: Axis, range: Range, from: number, to: number): Range => ({ min: valueAtShare(axis, range, from), max: valueAtShare(axis, range, to) });


export const isTime = (axis: Axis): boolean => axis.kind === 'elapsed' || axis.kind === 'wall';

/** At most about `count` ticks at round places. */
export function ticksOf(axis: Axis, min: number, max: number, count: number): number[] {
  if (axis.kind === 'elapsed') return elapsedTicks(min, max, count, axis.start);
  if (axis.kind === 'wall') return wallTicks(min, max, count);
  if (axis.log) return yTicks(LOG, min, max, count);
  return axis.kind === 'step' ? stepTicks(min, max, count) : valueTicks(min, max, count, '');
}

export function labelsOf(axis: Axis, ticks: number[]): string[] {
  if (axis.kind === 'elapsed') return formatElapsedTicks(ticks, axis.start);
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
export function shareText(axis: Axis, whole: { min: number; max: number }, share: number): string {
  const width = ((whole.max - whole.min) * share) / 100;
  if (isTime(axis)) return formatDuration(width);
  const text = formatValue(width, '');
  return axis.kind === 'metric' ? `${text} of ${axis.name}` : `${text} steps`;
}
