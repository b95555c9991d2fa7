// Panels that are no line charts, as SVG for a picture of the page.

import { HEIGHT, LEFT, LETTER, LINE, RIGHT, round, text, TOP, WIDTH, wrapped, type Colors } from '../../../chart/chartImage';
import { fitEnds, fitOf, fitText } from '../../compare/fit';
import { formatValue } from '../../../base/units';
import { shownText, type LayoutPanel } from './layout';
import type { PanelLine } from './panelLines';
import type { PanelScale } from './panelScale';
import { barsOf, histogramBins, histogramScales, partsOf, scalarOf, scatterDots, scatterScales, tableOf } from './panelValues';

const MARGIN = 12;
const BODY = 40;
const BOTTOM = 40;
const MAX_LINES = Math.floor((HEIGHT - BODY) / LINE) - 1;
const MAX_DOTS = 4000;

/** What a picture of a panel is made of. */
export interface PanelPicture {
  panel: LayoutPanel;
  title: string;
  note: string;
  lines: readonly PanelLine[];
  /** Instead of values: the text of a text panel, or why there are none. */
  message: string | null;
  colorOf: (slot: number) => string;
}

/** A panel as an SVG group of the size of a chart. */
export function panelGroup(picture: PanelPicture, colors: Colors): string {
  const head = text(MARGIN, 20, picture.title, colors.text, 'font-size="13" font-weight="600"') + text(WIDTH - RIGHT, 20, picture.note, colors.soft, 'text-anchor="end"');
  if (picture.message !== null) return head + textLines(picture.message, colors);
  switch (picture.panel.kind) {
    case 'bar':
      return head + bars(picture, colors);
    case 'scatter':
      return head + scatter(picture, colors);
    case 'histogram':
      return head + histogram(picture, colors);
    case 'scalar':
      return head + scalar(picture, colors);
    case 'table':
      return head + table(picture, colors);
    default:
      return head; // lines and percentiles are charts, and a text has a message
  }
}

const lineY = (line: number): number => BODY + LINE * (line + 1);

/** The first lines that have room, and how many more there are. */
function fitting<T>(rows: readonly T[], colors: Colors, draw: (row: T, i: number) => string): string {
  const shownRows = rows.length > MAX_LINES ? rows.slice(0, MAX_LINES - 1) : rows;
  const more = rows.length > shownRows.length ? text(MARGIN, lineY(shownRows.length), `and ${rows.length - shownRows.length} more`, colors.soft) : '';
  return shownRows.map(draw).join('') + more;
}

const textLines = (message: string, colors: Colors): string =>
  fitting(wrapped(message, (WIDTH - 2 * MARGIN) / LETTER), colors, (line, i) => text(MARGIN, lineY(i), line, colors.text));

const shortened = (value: string, width: number): string => {
  const most = Math.floor(width / LETTER);
  return value.length > most ? `${value.slice(0, most - 1)}…` : value;
};

function bars({ panel, lines, colorOf }: PanelPicture, colors: Colors): string {
  const [from, width] = [200, WIDTH - 200 - 90];
  return fitting(barsOf(panel, lines), colors, ({ line, value, left, width: share }, i) =>
    [
      text(MARGIN, lineY(i), shortened(line.label, from - 2 * MARGIN), colors.soft),
      value === null ? '' : `<rect x="${round(from + left * width)}" y="${lineY(i) - 11}" width="${round(Math.max(1, share * width))}" height="12" fill="${colorOf(line.slot)}"/>`,
      text(WIDTH - MARGIN, lineY(i), formatValue(value, line.unit), colors.text, 'text-anchor="end"'),
    ].join(''),
  );
}

function scalar({ panel, lines }: PanelPicture, colors: Colors): string {
  const { value, text: caption } = scalarOf(panel, lines);
  return text(MARGIN, HEIGHT / 2, formatValue(value, lines[0]?.unit ?? ''), colors.text, 'font-size="30" font-weight="650"') + text(MARGIN, HEIGHT / 2 + 24, caption, colors.soft);
}

function table({ panel, lines }: PanelPicture, colors: Colors): string {
  const { head, rows } = tableOf(panel, lines);
  const first = Math.max(120, WIDTH - 2 * MARGIN - 110 * (head.length - 1));
  const width = (WIDTH - 2 * MARGIN - first) / Math.max(1, head.length - 1);
  return fitting([head, ...rows], colors, (row, i) =>
    row
      .map((cell, j) =>
        j === 0
          ? text(MARGIN, lineY(i), shortened(cell, first - 8), i === 0 ? colors.soft : colors.text)
          : text(MARGIN + first + width * j, lineY(i), shortened(cell, width - 4), i === 0 ? colors.soft : colors.text, 'text-anchor="end"'),
      )
      .join(''),
  );
}

const PLACE = { left: LEFT, top: TOP, width: WIDTH - LEFT - RIGHT, height: HEIGHT - TOP - BOTTOM };
const [TICKS_ACROSS, TICKS_UP] = [PLACE.width / 70, PLACE.height / 28];

function axes([across, up]: readonly [PanelScale, PanelScale], names: readonly [string, string], { grid, soft }: Colors): string {
  const line = (x1: number, y1: number, x2: number, y2: number): string => `<path d="M${round(x1)} ${round(y1)}L${round(x2)} ${round(y2)}" stroke="${grid}"/>`;
  const { left, top, width, height } = PLACE;
  return [
    ...across.ticks.map(({ at, text: label }) => line(left + at * width, top, left + at * width, top + height) + text(left + at * width, top + height + 14, label, soft, 'text-anchor="middle"')),
    ...up.ticks.map(({ at, text: label }) => line(left, top + (1 - at) * height, left + width, top + (1 - at) * height) + text(left - 6, top + (1 - at) * height + 4, label, soft, 'text-anchor="end"')),
    text(left + width, HEIGHT - 8, names[0], soft, 'text-anchor="end"'),
    text(left, top - 8, names[1], soft),
  ].join('');
}

function scatter({ panel, lines, colorOf }: PanelPicture, colors: Colors): string {
  const all = scatterDots(panel, lines);
  if (all.length === 0) return textLines('Nothing has both values.', colors);
  const dots = all.slice(0, MAX_DOTS);
  const scales = scatterScales(panel, lines, dots, TICKS_ACROSS, TICKS_UP);
  const fit = fitOf(dots.map(({ x, y }) => ({ x: scales[0].place(x), y: scales[1].place(y) })));
  const [from, to] = (fit && fitEnds(fit))?.map(({ x, y }) => `${round(PLACE.left + x * PLACE.width)} ${round(PLACE.top + (1 - y) * PLACE.height)}`) ?? [];
  const line = fit && from ? `<path d="M${from}L${to}" stroke="${colors.text}" stroke-dasharray="6 4"/>` + text(WIDTH - RIGHT, TOP - 8, `Fit: ${fitText(fit)}`, colors.soft, 'text-anchor="end"') : '';
  const drawn = dots.map(({ x, y, line }) => {
    const [cx, cy] = [PLACE.left + scales[0].place(x) * PLACE.width, PLACE.top + (1 - scales[1].place(y)) * PLACE.height];
    return Number.isFinite(cx) && Number.isFinite(cy) ? `<circle cx="${round(cx)}" cy="${round(cy)}" r="${panel.points ? 2 : 4}" fill="${colorOf(line.slot)}" fill-opacity="0.75"/>` : '';
  });
  return axes(scales, [shownText(panel.across), [...new Set(panel.metrics)].map(shownText).join(', ')], colors) + drawn.join('') + line;
}

function histogram({ panel, lines, colorOf }: PanelPicture, colors: Colors): string {
  const bins = histogramBins(panel, lines);
  if (!bins) return textLines('No values yet.', colors);
  const scales = histogramScales(bins, lines[0]?.unit ?? '', TICKS_ACROSS, TICKS_UP);
  const x = (value: number): number => PLACE.left + scales[0].place(value) * PLACE.width;
  const y = (value: number): number => PLACE.top + (1 - scales[1].place(value)) * PLACE.height;
  const drawn = bins.counts[0]!.flatMap((_, bin) => {
    const [left, right] = [x(bins.min + bin * bins.width), x(bins.min + (bin + 1) * bins.width)];
    return partsOf(bins, bin).map(
      ({ line, from, to }) => `<rect x="${round(left + 0.5)}" y="${round(y(to))}" width="${round(Math.max(1, right - left - 1))}" height="${round(Math.max(0, y(from) - y(to)))}" fill="${colorOf(lines[line]!.slot)}"/>`,
    );
  });
  return axes(scales, [panel.points ? 'value' : panel.statistic, panel.points ? 'samples' : 'count'], colors) + drawn.join('');
}
