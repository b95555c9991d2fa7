// What panels of each kind show of their lines.

import type { Line } from '../points';
import type { LayoutPanel } from './layout';
import { idOf, type PanelLine } from './panelLines';
import { bins, pairs, percentiles, statisticOf, valuesOf, type Bins } from './panelNumbers';

/** A line of each percentile. */
export function percentileLines(panel: LayoutPanel, lines: readonly PanelLine[]): Line[] {
  const found = percentiles(lines.map(({ points }) => points), panel.percentiles);
  return found.map((points, slot) => ({ id: `p${panel.percentiles[slot]}`, label: `${panel.percentiles[slot]} %`, slot, points }));
}

/** A point of a scatter plot. */
export interface Dot {
  x: number;
  y: number;
  line: PanelLine;
}

/** The lines of a scatter plot: those across, by what they are about, and those that are drawn over them. */
export function scatterLines(lines: readonly PanelLine[]): { across: ReadonlyMap<string, PanelLine>; up: PanelLine[] } {
  const last = Math.max(-1, ...lines.map(({ metric }) => metric)); // the expression across is the last one
  return {
    across: new Map(lines.filter(({ metric }) => metric === last).map((line) => [idOf(line.subject), line])),
    up: lines.filter(({ metric }) => metric !== last),
  };
}

export function scatterDots(panel: LayoutPanel, lines: readonly PanelLine[]): Dot[] {
  const { across, up } = scatterLines(lines);
  return up.flatMap((line): Dot[] => {
    const other = across.get(idOf(line.subject));
    if (!other) return [];
    if (panel.points) return pairs(other.points, line.points).map((pair) => ({ ...pair, line }));
    const [x, y] = [statisticOf(other.points, panel.statistic), statisticOf(line.points, panel.statistic)];
    return x === null || y === null ? [] : [{ x, y, line }];
  });
}

/** How many values each line has in the bins of a histogram; null if there are none. */
export function histogramBins(panel: LayoutPanel, lines: readonly PanelLine[]): Bins | null {
  return bins(
    lines.map(({ points }) => {
      if (panel.points) return valuesOf(points);
      const value = statisticOf(points, panel.statistic);
      return { values: value === null ? [] : [value], weights: null };
    }),
  );
}
