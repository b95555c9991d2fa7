// What panels of each kind show of their lines.

import type { Line } from '../../../chart/points';
import { groupBy } from '../../../base/groups';
import { formatValue } from '../../../base/units';
import { STATISTICS, type LayoutPanel, type Statistic } from './layout';
import { idOf, type PanelLine } from './panelLines';
import { acrossOf, bins, pairs, percentiles, statisticOf, valuesOf, type Bins } from './panelNumbers';
import { scaleOf, type PanelScale } from './panelScale';

/** A line of each percentile. */
export function percentileLines(panel: LayoutPanel, lines: readonly PanelLine[]): Line[] {
  const curves = percentiles(lines.map(({ points }) => points), panel.percentiles);
  return curves.map((points, slot) => ({ id: `p${panel.percentiles[slot]}`, label: `${panel.percentiles[slot]} %`, slot, points }));
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

/** A bar: how far it reaches from zero, as shares of the width. */
export interface Bar {
  line: PanelLine;
  value: number | null;
  left: number;
  width: number;
}

export function barsOf(panel: LayoutPanel, lines: readonly PanelLine[]): Bar[] {
  const values = lines.map(({ points }) => statisticOf(points, panel.statistic));
  const reach = panel.y === 'percent' ? 100 : Math.max(...values.map((value) => Math.abs(value ?? 0)), 0);
  const zero = values.some((value) => (value ?? 0) < 0) ? 0.5 : 0;
  return lines.map((line, i) => {
    const value = values[i]!;
    const width = reach > 0 ? Math.min(1, Math.abs(value ?? 0) / reach) * (1 - zero) : 0;
    return { line, value, left: (value ?? 0) < 0 ? zero - width : zero, width };
  });
}

/** The number of a panel, and what it is. */
export function scalarOf(panel: LayoutPanel, lines: readonly PanelLine[]): { value: number | null; text: string } {
  const values = lines.map(({ points }) => statisticOf(points, panel.statistic)).filter((value) => value !== null);
  const noun = panel.scope === 'runs' ? 'runs' : 'devices';
  const how = panel.statistic === 'last' ? 'mean of the last values' : panel.statistic;
  const text = values.length === 1 ? `${panel.statistic}${lines.length > 1 ? ` of 1 of ${lines.length} ${noun}` : ''}` : `${how} of ${values.length} ${noun}`;
  return { value: acrossOf(values, panel.statistic), text };
}

/** The texts of a table, its head first. One metric has a column of each statistic; several have one column each. */
export function tableOf(panel: LayoutPanel, lines: readonly PanelLine[]): { head: string[]; rows: string[][] } {
  const metrics = [...new Map(lines.map((line) => [line.metric, line.text]))];
  const rows = [...groupBy(lines, ({ subject }) => idOf(subject)).values()];
  const value = (line: PanelLine | undefined, statistic: Statistic): string => (line ? formatValue(statisticOf(line.points, statistic), line.unit) : '–');
  const [subject, single] = [panel.scope === 'runs' ? 'Run' : 'Device', metrics.length === 1];
  return {
    head: [subject, ...(single ? STATISTICS : metrics.map(([, text]) => `${text} (${panel.statistic})`))],
    rows: rows.map((of) => [of[0]!.subjectLabel, ...(single ? STATISTICS.map((statistic) => value(of[0], statistic)) : metrics.map(([metric]) => value(of.find((line) => line.metric === metric), panel.statistic)))]),
  };
}

/** The axes of a scatter plot. */
export function scatterScales(panel: LayoutPanel, lines: readonly PanelLine[], dots: readonly Dot[], wide: number, high: number): readonly [PanelScale, PanelScale] {
  const { across, up } = scatterLines(lines);
  const [xUnit, yUnit] = [[...across.values()][0]?.unit ?? '', up[0]?.unit ?? ''];
  return [
    scaleOf(dots.map(({ x }) => x), { scale: 'linear', outliersAside: false, unit: xUnit }, wide),
    scaleOf(dots.map(({ y }) => y), { scale: panel.y, outliersAside: false, unit: yUnit }, high),
  ];
}

/** The axes of a histogram. */
export function histogramScales({ min, width, counts }: Bins, unit: string, wide: number, high: number): readonly [PanelScale, PanelScale] {
  const totals = counts[0]!.map((_, bin) => counts.reduce((sum, of) => sum + of[bin]!, 0));
  return [
    scaleOf([min, min + width * totals.length], { scale: 'linear', outliersAside: false, unit }, wide),
    scaleOf([0, ...totals], { scale: 'auto', outliersAside: false, unit: '' }, high),
  ];
}

/** The parts of a bar of a histogram: how many values of each line are below and in it. */
export function partsOf({ counts }: Bins, bin: number): { line: number; from: number; to: number }[] {
  let from = 0;
  return counts.flatMap((of, line) => {
    const count = of[bin]!;
    if (count === 0) return [];
    const part = { line, from, to: from + count };
    from = part.to;
    return [part];
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
