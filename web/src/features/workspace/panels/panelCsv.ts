// The values of a panel as rows of a table.

import type { Cell } from '../../../base/csv';
import type { Line } from '../../../chart/points';
import { shownText, STATISTICS, type LayoutPanel } from './layout';
import type { PanelLine } from './panelLines';
import { statisticOf } from './panelNumbers';
import { histogramBins, percentileLines, scatterDots } from './panelValues';

const subjectOf = ({ subject, subjectLabel }: PanelLine): Cell[] => [subject.run, subject.host, subject.rank, subject.device, subjectLabel];
const SUBJECT = ['run', 'host', 'rank', 'device', 'name'];

/** The rows of a panel, its head first; null for a panel without values. `x`: what its points are over. */
export function panelRows(panel: LayoutPanel, lines: readonly PanelLine[], x: string): Cell[][] | null {
  switch (panel.kind) {
    case 'text':
    case 'parallel':
    case 'importance':
      return null; // the last two have fields instead of lines
    case 'line':
      return [[...SUBJECT, 'metric', x, 'value', 'min', 'max', 'n'], ...lines.flatMap((line) => pointRows([...subjectOf(line), line.text], line))];
    case 'percentile':
      return [['percentile', x, 'value'], ...percentileLines(panel, lines).flatMap((line, i) => pointRows([panel.percentiles[i]], line).map((row) => row.slice(0, 3)))];
    case 'scatter':
      return [[...SUBJECT, 'metric', shownText(panel.across), 'value'], ...scatterDots(panel, lines).map(({ x, y, line }) => [...subjectOf(line), line.text, x, y])];
    case 'histogram':
      return histogramRows(panel, lines);
    case 'bar':
    case 'scalar':
    case 'table':
      return [[...SUBJECT, 'metric', ...STATISTICS], ...lines.map((line) => [...subjectOf(line), line.text, ...STATISTICS.map((statistic) => statisticOf(line.points, statistic))])];
  }
}

function pointRows(head: readonly Cell[], { points: { x, y, low, high, n } }: Pick<Line, 'points'>): Cell[][] {
  return x.map((at, i) => [...head, at, y[i], low?.[i] ?? y[i], high?.[i] ?? y[i], n?.[i] ?? (y[i] === null ? 0 : 1)]);
}

function histogramRows(panel: LayoutPanel, lines: readonly PanelLine[]): Cell[][] {
  const bins = histogramBins(panel, lines);
  const rows = (bins ? lines : []).flatMap((line, i) =>
    bins!.counts[i]!.map((count, bin) => [...subjectOf(line), line.text, bins!.min + bin * bins!.width, bins!.min + (bin + 1) * bins!.width, count]),
  );
  return [[...SUBJECT, 'metric', 'from', 'to', 'n'], ...rows];
}
