// How a chart is drawn: options for uPlot from a few lines, and nothing about where they come from.

import uPlot from 'uplot';
import type { Drawn } from './drawn';
import type { Range } from './points';
import { atLevel, labelsOf, levelOf, partOf, ticksOf, type Axis } from './xAxis';
import { rangeOf, yLabels, yTicks, type YAxis } from './yAxis';
import { translucent } from './palette';

export interface Hooks {
  zoom: (min: number, max: number) => void;
  reset: () => void;
  /** The crosshair moved; the index of each line's point under it, null without. */
  cursor: (plot: uPlot) => void;
  drawn: (plot: uPlot) => void;
}

/** An event or alert on the time axis. */
export interface Pin {
  x: number;
  level: string;
  text: string;
}

export interface PlotSetup {
  lines: readonly Drawn[];
  /** The same with their newest points. */
  newest: () => readonly Drawn[];
  axis: Axis;
  y: YAxis;
  size: { width: number; height: number };
  /** The displayed range. uPlot's own is still the previous one while it asks for that of the y axis. */
  range: () => Range;
  /** Charts with the same name share a crosshair. */
  sync: string;
  pins: () => readonly Pin[];
  /** Times that are shaded. */
  spans: () => readonly Range[];
  hooks: Hooks;
}

/** Of the x axis, with its labels. */
export const AXIS_HEIGHT = 22;
const FADED = 0.35;
const UNFOCUSED = 0.15;
/** More bands than these are fainter: they lie over each other. */
const FEW_BANDS = 4;
/** uPlot draws no axis if it finds none of these between two ticks, and its own end at 1e32: less than a diverging loss. */
const POWERS = Array.from({ length: 325 }, (_, i) => Number(`1e${i - 16}`));

/** More lines have no points at the crosshair. */
const MAX_POINTS = 12;

const FONT = '11px system-ui, "Segoe UI", Roboto, "Liberation Sans", sans-serif';

export function options({ lines, newest, axis, y, size, range: shownRange, sync, pins, spans, hooks }: PlotSetup): uPlot.Options {
  const css = getComputedStyle(document.documentElement);
  const color = (name: string): string => css.getPropertyValue(name).trim();
  const [grid, text, warn, bad] = [color('--grid'), color('--soft'), color('--warn'), color('--bad')];
  const raws = lines.filter(({ raw }) => raw);
  const banded = lines.filter(({ band }) => band);
  const firstBand = lines.length + raws.length + 1;
  return {
    ...size,
    ms: 1,
    legend: { show: false },
    focus: { alpha: UNFOCUSED },
    padding: [6, 8, 0, 0],
    scales: {
      x: { time: false, auto: false, ...(axis.log ? { distr: 100, fwd: levelOf(axis), bwd: atLevel(axis) } : { distr: 1 }) },
      y: { distr: y.scale === 'log' ? 3 : y.scale === 'symlog' ? 4 : 1, asinh: y.threshold ?? 1, range: (plot, low, high) => rangeOf(y, low, high, () => shownValues(plot, lines.length, shownRange())) },
    },
    axes: [xAxis(axis, text, grid), yAxis(y, text, grid)],
    series: [
      {},
      ...lines.map(
        (line): uPlot.Series => ({
          label: line.label,
          stroke: line.faded ? translucent(line.color, FADED) : line.color,
          width: line.width,
          ...(line.dash.length > 0 && { dash: line.dash }),
          points: { show: (plot, i) => alone(plot, i), size: 5, fill: line.color },
        }),
      ),
      ...raws.map(({ color }): uPlot.Series => ({ stroke: translucent(color, 0.45), width: 1, points: { show: false } })),
      ...banded.flatMap(({ color }): uPlot.Series[] => [edge(color), edge(color)]),
    ],
    bands: banded.map(
      (line, i): uPlot.Band => ({ series: [firstBand + 2 * i + 1, firstBand + 2 * i], fill: translucent(line.color, banded.length > FEW_BANDS ? 0.1 : 0.16) }),
    ),
    cursor: {
      y: false,
      // Moving hundreds of points over all charts of a page takes longer than a frame.
      points: { size: 6, show: lines.length <= MAX_POINTS && ((plot, i) => cursorPoint(plot, i, lines)) },
      drag: { x: true, y: false, setScale: false, dist: 4 },
      // Every chart follows the crosshair; only the one under the pointer is dragged on. uPlot keeps keys in an object, which has a
      // `constructor` already, as a run may be called.
      sync: { key: `of ${sync}`, setSeries: false, filters: { pub: (type) => type !== 'mousedown' && type !== 'mouseup' } },
      bind: {
        dblclick: () => () => (hooks.reset(), null),
        mousedown: (plot, _target, select) => (event) => (event.shiftKey ? pan(plot, event, axis, shownRange(), hooks.zoom) : select(event)),
      },
    },
    hooks: {
      setSelect: [(plot) => takeSelection(plot, hooks.zoom)],
      setCursor: [hooks.cursor],
      drawClear: [(plot) => drawSpans(plot, spans(), translucent(bad, 0.14))],
      draw: [(plot) => drawNotFinite(plot, newest()), (plot) => drawPins(plot, pins(), { info: text, warning: warn, error: bad }), hooks.drawn],
    },
  };
}

function xAxis(axis: Axis, stroke: string, grid: string): uPlot.Axis {
  return {
    stroke,
    font: FONT,
    size: AXIS_HEIGHT,
    gap: 7,
    grid: { stroke: grid, width: 1 },
    ticks: { show: false },
    ...(axis.log && { incrs: POWERS, filter: (_plot: uPlot, ticks: number[]) => ticks }),
    splits: (plot, _i, min, max) => ticksOf(axis, min, max, Math.max(2, Math.floor(plot.bbox.width / uPlot.pxRatio / 54))),
    values: (plot, ticks) => fitting(plot, ticks, labelsOf(axis, ticks)),
  };
}

function yAxis(y: YAxis, stroke: string, grid: string): uPlot.Axis {
  return {
    stroke,
    font: FONT,
    gap: 6,
    size: (plot, values) => axisWidth(plot, values),
    grid: { stroke: grid, width: 1 },
    ticks: { show: false },
    filter: (_plot, ticks) => ticks,
    incrs: POWERS,
    splits: (plot, _i, min, max) => yTicks(y, min, max, Math.max(2, Math.floor(plot.bbox.height / uPlot.pxRatio / 28))),
    values: (_plot, ticks) => yLabels(y, ticks),
  };
}

/** The values of the lines in the displayed range, without their bands. */
function shownValues(plot: uPlot, lines: number, { min, max }: Range): number[] {
  const x = plot.data[0];
  const values: number[] = [];
  for (let column = 1; column <= lines; column++) {
    plot.data[column]?.forEach((value, i) => {
      if (typeof value === 'number' && x[i]! >= min && x[i]! <= max) values.push(value);
    });
  }
  return values;
}

/** An edge of a band: without it, a spike of one bucket would be too thin to see. */
const edge = (color: string): uPlot.Series => ({ stroke: translucent(color, 0.22), width: 1, points: { show: false } });

function cursorPoint(_plot: uPlot, i: number, lines: readonly Drawn[]): HTMLElement {
  const point = document.createElement('div');
  const line = lines[i - 1];
  if (line) point.style.background = line.color;
  else point.hidden = true;
  return point;
}

/** Points are drawn only where a line would show nothing: one value between two gaps, or one in all. */
function alone(plot: uPlot, i: number): boolean {
  const values = plot.data[i]!;
  let count = 0;
  for (let at = 0; at < values.length && count < 2; at++) if (typeof values[at] === 'number') count++;
  return count === 1;
}

/** Without the labels that would be cut off at the right edge. */
function fitting(plot: uPlot, ticks: readonly number[], labels: readonly string[]): (string | null)[] {
  return labels.map((label, i) => {
    const end = plot.bbox.left / uPlot.pxRatio + plot.valToPos(ticks[i]!, 'x') + label.length * 3.1;
    return end > plot.width ? null : label;
  });
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

/** Move the shown part along with the pointer, until its button is released. */
function pan(plot: uPlot, { clientX: from }: MouseEvent, axis: Axis, range: Range, zoom: Hooks['zoom']): null {
  const moved = (event: MouseEvent): Range => {
    const by = (from - event.clientX) / plot.over.clientWidth;
    return partOf(axis, range, by, 1 + by);
  };
  const move = (event: MouseEvent): void => plot.setScale('x', moved(event));
  const release = (event: MouseEvent): void => {
    window.removeEventListener('mousemove', move);
    if (event.clientX === from) return;
    const { min, max } = moved(event);
    zoom(min, max);
  };
  window.addEventListener('mousemove', move);
  window.addEventListener('mouseup', release, { once: true });
  return null;
}

function takeSelection(plot: uPlot, zoom: Hooks['zoom']): void {
  const { left, width } = plot.select;
  if (width < 4) return;
  const [min, max] = [plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x')];
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  zoom(min, max);
}

/** Shade times, behind the lines. */
function drawSpans(plot: uPlot, spans: readonly Range[], color: string): void {
  const { ctx, bbox } = plot;
  const left = bbox.left;
  const right = left + bbox.width;
  ctx.save();
  ctx.fillStyle = color;
  for (const { min, max } of spans) {
    const from = Math.max(left, plot.valToPos(min, 'x', true));
    const to = Math.min(right, Math.max(plot.valToPos(max, 'x', true), from + uPlot.pxRatio));
    if (to > from) ctx.fillRect(from, bbox.top, to - from, bbox.height);
  }
  ctx.restore();
}

const CROSS = 2.5;

/** A cross at the lower edge for each value that is not finite, in the colour of its line. */
function drawNotFinite(plot: uPlot, lines: readonly Drawn[]): void {
  const { ctx, bbox } = plot;
  const { min, max } = plot.scales.x!;
  const size = CROSS * uPlot.pxRatio;
  const y = bbox.top + bbox.height - 2 * size;
  ctx.save();
  ctx.lineWidth = 1.5 * uPlot.pxRatio;
  for (const { notFinite = [], color } of lines) {
    let last = -Infinity;
    ctx.strokeStyle = color;
    ctx.beginPath();
    for (const at of notFinite) {
      if (at < min! || at > max!) continue;
      const x = Math.round(plot.valToPos(at, 'x', true));
      if (x - last < 2 * size) continue;
      last = x;
      ctx.moveTo(x - size, y - size);
      ctx.lineTo(x + size, y + size);
      ctx.moveTo(x + size, y - size);
      ctx.lineTo(x - size, y + size);
    }
    ctx.stroke();
  }
  ctx.restore();
}

const PIN_SIZE = 4;

/** A dashed line for each event, with a head that says where to point at. */
function drawPins(plot: uPlot, pins: readonly Pin[], colors: Record<string, string>): void {
  const { ctx, bbox } = plot;
  const { min, max } = plot.scales.x!;
  ctx.save();
  ctx.lineWidth = uPlot.pxRatio;
  let last = -Infinity;
  for (const pin of pins) {
    if (pin.x < min! || pin.x > max!) continue;
    const x = Math.round(plot.valToPos(pin.x, 'x', true));
    if (x === last) continue;
    last = x;
    ctx.strokeStyle = ctx.fillStyle = colors[pin.level] ?? colors.warning!;
    ctx.setLineDash([3, 3]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    const size = PIN_SIZE * uPlot.pxRatio;
    ctx.beginPath();
    ctx.moveTo(x - size, bbox.top - size);
    ctx.lineTo(x + size, bbox.top - size);
    ctx.lineTo(x, bbox.top + size / 2);
    ctx.fill();
  }
  ctx.restore();
}

const PIN_REACH = 6;

/** The pins at the crosshair. */
export function pinsNear(plot: uPlot, pins: readonly Pin[], left: number): Pin[] {
  return pins.filter((pin) => Math.abs(plot.valToPos(pin.x, 'x') - left) <= PIN_REACH);
}
