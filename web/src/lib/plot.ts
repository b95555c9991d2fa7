// How a chart is drawn: options for uPlot from a few lines, and nothing about where they come from.

import uPlot from 'uplot';
import { lineColor, translucent } from './palette';
import { align, spread, type Aligned, type Line, type Points } from './points';
import {
  elapsedTicks,
  formatElapsed,
  formatElapsedTicks,
  formatMoment,
  formatStepTicks,
  formatWallTicks,
  stepTicks,
  wallTicks,
} from './time';
import { formatTicks, valueRange, valueTicks } from './units';

/** What the x axis counts: time since the start, time of day, or steps of training. */
export type Axis = { kind: 'elapsed'; start: number } | { kind: 'wall' } | { kind: 'step' };

/** More lines than this are drawn as one band from the lowest to the highest, with their mean. */
export const MOST_LINES = 12;
/** A band behind each line tells something only while there are few. */
const MOST_BANDS = 4;

/** A line on a chart that stands for one series, or for all of them. */
export interface Drawn {
  label: string;
  color: string;
  points: Points;
  band: boolean;
}

export function drawn(lines: readonly Line[], dark: boolean, all: boolean): Drawn[] {
  if (lines.length > MOST_LINES && !all) {
    const label = `mean of ${lines.length}`;
    return [{ label, color: lineColor(0, dark), points: spread(lines), band: true }];
  }
  return lines.map(({ label, points }, i) => ({
    label,
    color: lineColor(i, dark),
    points,
    band: lines.length <= MOST_BANDS && points.low !== null,
  }));
}

/** The columns of a chart: its lines first, then low and high of those with a band. */
export function columnsOf(lines: readonly Drawn[]): Aligned {
  const values = align(
    lines.map(({ points, band }) => ({
      x: points.x,
      columns: band ? [points.y, points.low!, points.high!] : [points.y],
    })),
  );
  const bands: Aligned['columns'] = [];
  const own: Aligned['columns'] = [];
  let i = 0;
  for (const { band } of lines) {
    own.push(values.columns[i++]!);
    if (band) bands.push(values.columns[i++]!, values.columns[i++]!);
  }
  return { x: values.x, columns: [...own, ...bands] };
}

/** What makes two drawings the same plot with other data; anything else needs a new plot. */
export const shape = (lines: readonly Drawn[]): string =>
  lines.map(({ label, color, band }) => `${label}\t${color}\t${band}`).join('\n');

export interface Hooks {
  zoom: (min: number, max: number) => void;
  reset: () => void;
  /** The crosshair moved; the index of each line's point under it, null without. */
  cursor: (plot: uPlot) => void;
}

export interface Mark {
  x: number;
  level: string;
}

const FONT = '11px system-ui, "Segoe UI", Roboto, "Liberation Sans", sans-serif';

export function options(
  lines: readonly Drawn[],
  unit: string,
  axis: Axis,
  size: { width: number; height: number },
  sync: string,
  marks: () => readonly Mark[],
  hooks: Hooks,
): uPlot.Options {
  const css = getComputedStyle(document.documentElement);
  const color = (name: string): string => css.getPropertyValue(name).trim();
  const [grid, text, warn, bad] = [color('--grid'), color('--soft'), color('--warn'), color('--bad')];
  const bands = lines
    .filter(({ band }) => band)
    .map((line, i): uPlot.Band => {
      const low = lines.length + 1 + 2 * i;
      return { series: [low + 1, low], fill: translucent(line.color, 0.16) };
    });
  return {
    ...size,
    ms: 1,
    legend: { show: false },
    padding: [6, 8, 0, 0],
    scales: {
      x: { time: false, auto: false },
      y: { range: (_plot, low, high) => valueRange(low, high, unit) },
    },
    axes: [
      {
        stroke: text,
        font: FONT,
        size: 22,
        gap: 7,
        grid: { stroke: grid, width: 1 },
        ticks: { show: false },
        splits: (plot, _i, min, max) => ticksOf(axis, min, max, Math.max(2, Math.floor(plot.bbox.width / uPlot.pxRatio / 54))),
        values: (plot, ticks) => fitting(plot, ticks, labelsOf(axis, ticks)),
      },
      {
        stroke: text,
        font: FONT,
        gap: 6,
        size: (plot, values) => axisWidth(plot, values),
        grid: { stroke: grid, width: 1 },
        ticks: { show: false },
        splits: (plot, _i, min, max) => valueTicks(min, max, Math.max(2, Math.floor(plot.bbox.height / uPlot.pxRatio / 28)), unit),
        values: (_plot, ticks) => formatTicks(ticks, unit),
      },
    ],
    series: [
      {},
      ...lines.map(
        (line): uPlot.Series => ({
          label: line.label,
          stroke: line.color,
          width: 1.4,
          points: { show: (plot, i) => alone(plot, i), size: 5, fill: line.color },
        }),
      ),
      ...lines.filter(({ band }) => band).flatMap((): uPlot.Series[] => [edge(), edge()]),
    ],
    bands,
    cursor: {
      y: false,
      points: { size: 6, show: (plot, i) => cursorPoint(plot, i, lines.length) },
      drag: { x: true, y: false, setScale: false, dist: 4 },
      // Every chart follows the crosshair; only the one under the pointer is dragged on.
      sync: { key: sync, setSeries: false, filters: { pub: (type) => type !== 'mousedown' && type !== 'mouseup' } },
      bind: { dblclick: () => () => (hooks.reset(), null) },
    },
    hooks: {
      setSelect: [(plot) => takeSelection(plot, hooks.zoom)],
      setCursor: [hooks.cursor],
      draw: [(plot) => drawMarks(plot, marks(), { warning: warn, error: bad })],
    },
  };
}

/** An edge of a band: never drawn itself, but the axis has room for it. */
const edge = (): uPlot.Series => ({ stroke: 'transparent', width: 0, points: { show: false } });

function cursorPoint(plot: uPlot, i: number, lines: number): HTMLElement {
  const point = document.createElement('div');
  if (i > lines) point.hidden = true;
  else point.style.background = String((plot.series[i]!.stroke as () => string)());
  return point;
}

/** Points are drawn only where a line would show nothing: one value between two gaps, or one in all. */
function alone(plot: uPlot, i: number): boolean {
  const values = plot.data[i]!;
  let known = 0;
  for (let at = 0; at < values.length && known < 2; at++) if (typeof values[at] === 'number') known++;
  return known === 1;
}

function ticksOf(axis: Axis, min: number, max: number, count: number): number[] {
  if (axis.kind === 'elapsed') return elapsedTicks(min, max, count, axis.start);
  return axis.kind === 'wall' ? wallTicks(min, max, count) : stepTicks(min, max, count);
}

function labelsOf(axis: Axis, ticks: number[]): string[] {
  if (axis.kind === 'elapsed') return formatElapsedTicks(ticks, axis.start);
  return axis.kind === 'wall' ? formatWallTicks(ticks) : formatStepTicks(ticks);
}

/** Without the labels that would be cut off at the right edge. */
function fitting(plot: uPlot, ticks: readonly number[], labels: readonly string[]): (string | null)[] {
  return labels.map((label, i) => {
    const end = plot.bbox.left / uPlot.pxRatio + plot.valToPos(ticks[i]!, 'x') + label.length * 3.1;
    return end > plot.width ? null : label;
  });
}

/** The x of the crosshair in words. */
export function whereText(axis: Axis, x: number): string {
  if (axis.kind === 'elapsed') return formatElapsed(x - axis.start);
  return axis.kind === 'wall' ? formatMoment(x) : `step ${Math.round(x)}`;
}

/** As wide as its widest label, in steps, so that charts above each other mostly line up. */
function axisWidth(plot: uPlot, values: readonly string[] | null): number {
  if (!values?.length) return 48;
  plot.ctx.save();
  plot.ctx.font = FONT;
  const widest = Math.max(...values.map((value) => plot.ctx.measureText(value).width));
  plot.ctx.restore();
  return Math.max(48, Math.ceil((widest + 12) / 8) * 8);
}

function takeSelection(plot: uPlot, zoom: Hooks['zoom']): void {
  const { left, width } = plot.select;
  if (width < 4) return;
  const [min, max] = [plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x')];
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  zoom(min, max);
}

function drawMarks(plot: uPlot, marks: readonly Mark[], colors: Record<string, string>): void {
  const { ctx, bbox } = plot;
  const { min, max } = plot.scales.x!;
  ctx.save();
  ctx.setLineDash([3, 3]);
  ctx.lineWidth = uPlot.pxRatio;
  for (const mark of marks) {
    if (mark.x < min! || mark.x > max!) continue;
    const x = Math.round(plot.valToPos(mark.x, 'x', true));
    ctx.strokeStyle = colors[mark.level] ?? colors.warning!;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}
