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

/** What the x axis counts: time since the start, time of day, steps of training, or the values of a logged metric. */
export type Axis = { kind: 'elapsed'; start: number } | { kind: 'wall' } | { kind: 'step' } | { kind: 'metric'; name: string };

export const isTime = (axis: Axis): boolean => axis.kind === 'elapsed' || axis.kind === 'wall';

/** At most about `count` ticks at round places. */
export function ticksOf(axis: Axis, min: number, max: number, count: number): number[] {
  if (axis.kind === 'elapsed') return elapsedTicks(min, max, count, axis.start);
  if (axis.kind === 'wall') return wallTicks(min, max, count);
  return axis.kind === 'step' ? stepTicks(min, max, count) : valueTicks(min, max, count, '');
}

export function labelsOf(axis: Axis, ticks: number[]): string[] {
  if (axis.kind === 'elapsed') return formatElapsedTicks(ticks, axis.start);
  if (axis.kind === 'wall') return formatWallTicks(ticks);
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
