// Charts as files: an SVG of one chart or of a page, and a PNG of it.

import { longestStep } from './points';
import { formatMoment } from '../base/time';
import type { Drawn } from './drawn';
import type { ChartSnapshot, DrawnPanel } from './shownCharts.svelte';
import { labelsOf, shareOf, ticksOf, whereText } from './xAxis';
import { levelOf, rangeOf, yLabels, yTicks } from './yAxis';

export interface Colors {
  background: string;
  text: string;
  soft: string;
  grid: string;
  warning: string;
  error: string;
}

export const WIDTH = 560;
export const HEIGHT = 300;
export const [LEFT, RIGHT, TOP, BOTTOM] = [64, 12, 58, 28];
const GAP = 16;
const MAX_NAMED = 8;
const FONT = 'system-ui, Segoe UI, Roboto, Liberation Sans, sans-serif';
const HEAD = 44;
/** About the width of a letter, and the height of a line. */
export const LETTER = 6.2;
export const LINE = 16;

/** The colours of the page, for a picture of it. */
export function pageColors(): Colors {
  const css = getComputedStyle(document.documentElement);
  const color = (name: string): string => css.getPropertyValue(name).trim();
  return {
    background: color('--card'),
    text: color('--text'),
    soft: color('--soft'),
    grid: color('--grid'),
    warning: color('--warn'),
    error: color('--bad'),
  };
}

/** One chart as an SVG document. */
export function chartSvg(chart: ChartSnapshot, colors: Colors): string {
  return document_(WIDTH, HEIGHT, colors, chartGroup(chart, colors));
}

/** The charts of a page in a grid under its title, and the names of what is not in the picture. */
export function pageSvg(title: string, charts: readonly (ChartSnapshot | DrawnPanel)[], leftOut: readonly string[], colors: Colors): string {
  const columns = charts.length > 8 ? 3 : charts.length > 1 ? 2 : 1;
  const rows = Math.ceil(charts.length / columns);
  const cells = charts.map((chart, i) => {
    const [x, y] = [(i % columns) * (WIDTH + GAP), HEAD + Math.floor(i / columns) * (HEIGHT + GAP)];
    return `<g transform="translate(${x} ${y})">${'draw' in chart ? chart.draw(colors) : chartGroup(chart, colors)}</g>`;
  });
  const head = text(12, 28, `${title} · ${formatMoment(Date.now())}`, colors.text, 'font-size="16" font-weight="600"');
  const width = columns * (WIDTH + GAP) - GAP;
  const bottom = HEAD + rows * (HEIGHT + GAP);
  const without = leftOut.length > 0 ? wrapped(`Not in this picture: ${leftOut.join(', ')}`, width / LETTER) : [];
  const foot = without.map((line, i) => text(12, bottom + 6 + LINE * (i + 1), line, colors.soft));
  return document_(width, bottom + without.length * LINE + (without.length > 0 ? GAP : 0), colors, head + cells.join('') + foot.join(''));
}

function document_(width: number, height: number, colors: Colors, content: string): string {
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" ` +
    `font-family="${FONT}" font-size="11"><rect width="100%" height="100%" fill="${colors.background}"/>${content}</svg>`
  );
}

/** Text as XML, without the control characters that XML does not allow. */
export const xmlText = (value: string): string =>
  value.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, '\ufffd').replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);

/** A text in lines of at most so many letters, broken at spaces where there are some. */
export function wrapped(value: string, letters: number): string[] {
  const most = Math.max(1, Math.floor(letters));
  return value.split('\n').flatMap((paragraph) => {
    const lines: string[] = [];
    let rest = paragraph;
    while (rest.length > most) {
      const space = rest.lastIndexOf(' ', most);
      const at = space > most / 2 ? space : most;
      lines.push(rest.slice(0, at));
      rest = rest.slice(at).trimStart();
    }
    return [...lines, rest];
  });
}

export const text = (x: number, y: number, value: string, fill: string, more = ''): string =>
  `<text x="${round(x)}" y="${round(y)}" fill="${fill}" ${more}>${xmlText(value)}</text>`;

export const round = (value: number): number => Math.round(value * 100) / 100;

function chartGroup(chart: ChartSnapshot, colors: Colors): string {
  const { axis, range, lines, y } = chart;
  const shownValues = lines.map(({ points }) => points.y.filter((value, i) => isShown(points.x[i]!, range) && isDrawable(value, y.scale)) as number[]);
  const bands = lines.filter(({ band }) => band).flatMap(({ points }) => [...points.low!, ...points.high!]);
  const all = [...shownValues.flat(), ...bands.filter((value) => isDrawable(value, y.scale))] as number[];
  const extreme = (pick: (a: number, b: number) => number): number | null => (all.length ? all.reduce((a, b) => pick(a, b)) : null);
  const [low, high] = rangeOf(y, extreme(Math.min), extreme(Math.max), () => shownValues.flat());
  const level = levelOf(y);
  const plot = {
    x: (value: number): number => LEFT + shareOf(axis, range, value) * (WIDTH - LEFT - RIGHT),
    y: (value: number): number => HEIGHT - BOTTOM - ((level(value) - level(low)) / (level(high) - level(low))) * (HEIGHT - TOP - BOTTOM),
  };
  const id = `clip${(clips += 1)}`;
  const clip = `<clipPath id="${id}"><rect x="${LEFT}" y="${TOP}" width="${WIDTH - LEFT - RIGHT}" height="${HEIGHT - TOP - BOTTOM}"/></clipPath>`;
  const drawnLines = lines.map((line) => linePath(line, plot, (value) => isDrawable(value, y.scale), axis.log)).join('');
  return [
    text(12, 20, chart.title, colors.text, 'font-size="13" font-weight="600"'),
    text(WIDTH - RIGHT, 20, `${whereText(axis, range.min)} to ${whereText(axis, range.max)}`, colors.soft, 'text-anchor="end"'),
    legend(lines, colors),
    gridOf(chart, [low, high], plot, colors),
    clip,
    markBars(chart, plot, colors),
    `<g clip-path="url(#${id})" fill="none" stroke-linejoin="round">${pinLines(chart, plot, colors)}${drawnLines}</g>`,
  ].join('');
}

let clips = 0;

const isShown = (x: number, { min, max }: { min: number; max: number }): boolean => x >= min && x <= max;
const isDrawable = (value: number | null | undefined, scale: string): value is number =>
  typeof value === 'number' && (scale !== 'log' || value > 0);

interface Place {
  x: (value: number) => number;
  y: (value: number) => number;
}

function gridOf({ axis, range, y }: ChartSnapshot, [low, high]: [number, number], plot: Place, { grid, soft }: Colors): string {
  const across = ticksOf(axis, range.min, range.max, 8);
  const up = yTicks(y, low, high, 7);
  const [xLabels, yTexts] = [labelsOf(axis, across), yLabels(y, up)];
  const line = (x1: number, y1: number, x2: number, y2: number): string =>
    `<path d="M${round(x1)} ${round(y1)}L${round(x2)} ${round(y2)}" stroke="${grid}"/>`;
  return [
    ...across.map((tick, i) => line(plot.x(tick), TOP, plot.x(tick), HEIGHT - BOTTOM) + text(plot.x(tick), HEIGHT - 10, xLabels[i]!, soft, 'text-anchor="middle"')),
    ...up.map((tick, i) => line(LEFT, plot.y(tick), WIDTH - RIGHT, plot.y(tick)) + text(LEFT - 6, plot.y(tick) + 4, yTexts[i]!, soft, 'text-anchor="end"')),
  ].join('');
}

function legend(lines: readonly Drawn[], colors: Colors): string {
  const room = (WIDTH - 12 - RIGHT) / LETTER;
  const widths = lines.map(({ label }) => Math.min(label.length, 60) + 4);
  let count = Math.min(lines.length, MAX_NAMED);
  while (count > 1 && widths.slice(0, count).reduce((sum, width) => sum + width, count < lines.length ? 'and 99 more'.length : 0) > room) count -= 1;
  const named = lines.slice(0, count).map(({ label, color }) => `<tspan fill="${color}">● </tspan><tspan>${xmlText(label.slice(0, 60))}   </tspan>`);
  const more = lines.length > count ? `<tspan>and ${lines.length - count} more</tspan>` : '';
  return `<text x="12" y="40" fill="${colors.soft}" xml:space="preserve">${named.join('')}${more}</text>`;
}

function pinLines({ pins, range, axis }: ChartSnapshot, plot: Place, colors: Colors): string {
  if (axis.kind === 'step' || axis.kind === 'metric') return '';
  return pins
    .filter(({ x }) => isShown(x, range))
    .map(({ x, level }) => {
      const color = level === 'error' ? colors.error : colors.warning;
      return `<path d="M${round(plot.x(x))} ${TOP}V${HEIGHT - BOTTOM}" stroke="${color}" stroke-dasharray="3 3"/>`;
    })
    .join('');
}

function markBars({ marks = [], range }: ChartSnapshot, plot: Place, colors: Colors): string {
  return marks
    .filter(({ min, max }) => max >= range.min && min <= range.max)
    .map(({ min, max, level, text }) => {
      const [from, to] = [plot.x(Math.max(min, range.min)), plot.x(Math.min(max, range.max))];
      const [color, dash] = level === 'critical' ? [colors.error, ''] : [colors.warning, ' stroke-dasharray="5 3"'];
      return `<path d="M${round(from)} ${HEIGHT - BOTTOM + 3}H${round(Math.max(to, from + 2))}" stroke="${color}" stroke-width="3"${dash}><title>${xmlText(text)}</title></path>`;
    })
    .join('');
}

function linePath({ points, raw, band, color, dash, width }: Drawn, plot: Place, isKnown: (value: number | null | undefined) => value is number, logX = false): string {
  const longest = logX ? Infinity : longestStep(points.x);
  const path = (values: readonly (number | null | undefined)[]): string => {
    let connected = false;
    return values
      .map((value, i) => {
        if (!isKnown(value)) {
          connected = false;
          return '';
        }
        const command = connected && points.x[i]! - points.x[i - 1]! <= longest ? 'L' : 'M';
        connected = true;
        return `${command}${round(plot.x(points.x[i]!))} ${round(plot.y(value))}`;
      })
      .join('');
  };
  const parts: string[] = [];
  if (band && points.low && points.high) {
    const indexes = [...points.x.keys()].filter((i) => isKnown(points.low![i]) && isKnown(points.high![i]));
    const edge = (values: readonly (number | null)[], at: number[]): string =>
      at.map((i) => `${round(plot.x(points.x[i]!))} ${round(plot.y(values[i]!))}`).join('L');
    if (indexes.length > 1) {
      parts.push(`<path d="M${edge(points.high, indexes)}L${edge(points.low, indexes.toReversed())}Z" fill="${color}" fill-opacity="0.16"/>`);
    }
  }
  if (raw) parts.push(`<path d="${path(raw)}" stroke="${color}" stroke-opacity="0.45"/>`);
  const dashes = dash.length > 0 ? ` stroke-dasharray="${dash.join(' ')}"` : '';
  parts.push(`<path d="${path(points.y)}" stroke="${color}" stroke-width="${width}"${dashes}/>`);
  return parts.join('');
}

const PNG_SCALE = 2;
/** Browsers refuse larger canvases. */
const MAX_PIXELS = 16_000;

/** A PNG of an SVG document, with two dots per pixel where that is not too large. */
export async function pngOf(svg: string): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const scale = Math.min(PNG_SCALE, MAX_PIXELS / Math.max(image.naturalWidth, image.naturalHeight));
  const canvas = document.createElement('canvas');
  canvas.width = Math.round(image.naturalWidth * scale);
  canvas.height = Math.round(image.naturalHeight * scale);
  canvas.getContext('2d')!.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error('The picture is too large for this browser.')))),
  );
}

export const svgBlob = (svg: string): Blob => new Blob([svg], { type: 'image/svg+xml' });
