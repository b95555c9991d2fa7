// Axes of scatter plots and histograms: where a value is, and the ticks.

import { levelOf, rangeOf, thresholdOf, yLabels, yTicks, type YAxis } from '../../../chart/yAxis';

export interface PanelScale {
  /** From 0 to 1; outside where the value is outside the axis. */
  place: (value: number) => number;
  ticks: { at: number; text: string }[];
}

/** The axis that shows these values, with about `count` ticks. */
export function scaleOf(values: readonly number[], chosen: YAxis, count: number): PanelScale {
  const axis = chosen.scale === 'symlog' ? { ...chosen, threshold: thresholdOf(values) } : chosen;
  const drawable = axis.scale === 'log' ? values.filter((value) => value > 0) : values;
  const extreme = (pick: (a: number, b: number) => number): number | null => (drawable.length > 0 ? drawable.reduce((a, b) => pick(a, b)) : null);
  const [low, high] = rangeOf(axis, extreme(Math.min), extreme(Math.max), () => [...drawable]);
  const level = levelOf(axis);
  const share = (value: number): number => (level(value) - level(low)) / (level(high) - level(low));
  const ticks = yTicks(axis, low, high, Math.max(2, count));
  const texts = yLabels(axis, ticks);
  return { place: share, ticks: ticks.map((tick, i) => ({ at: share(tick), text: texts[i]! })) };
}
