// Panels of fields as SVG, for a picture of the page.

import { HEIGHT, LEFT, LINE, RIGHT, round, text, TOP, WIDTH, type Colors } from '../../../chart/chartImage';
import { extentOf, placeOf, shortName, suitsLog, type Dimension } from '../../compare/compare';
import { fitEnds, fitOf, fitText } from '../../compare/fit';
import { importanceText, percent } from '../../compare/importance';
import { formatValue } from '../../../base/units';
import type { Importances } from '../../../base/wire';

const BOTTOM = 40;
const PLACE = { left: LEFT, top: TOP, width: WIDTH - LEFT - RIGHT, height: HEIGHT - TOP - BOTTOM };
const MAX_PARAMETERS = 12;

const head = (title: string, note: string, { text: dark, soft }: Colors): string => text(12, 20, title, dark, 'font-size="13" font-weight="600"') + text(12, 38, note, soft);
const placer = (dimension: Dimension): ((value: number) => number) => {
  const [extent, log] = [extentOf(dimension), suitsLog(dimension)];
  return (value) => placeOf(value, extent, log);
};
const label = ({ categories, unit }: Dimension, value: number): string => (categories?.[Math.round(value)] ?? formatValue(value, unit)).slice(0, 14);
const inPicture = (colour: string, colors: Colors): string => (colour.startsWith('var(') ? colors.grid : colour);

/** A line for each run through its place on each axis. */
export function parallelGroup(title: string, axes: readonly Dimension[], colours: readonly string[], inside: readonly boolean[], colors: Colors): string {
  const x = (axis: number): number => PLACE.left + (axes.length === 1 ? PLACE.width / 2 : (axis * (PLACE.width - 60)) / (axes.length - 1));
  const y = (share: number): number => PLACE.top + (1 - share) * PLACE.height;
  const placers = axes.map(placer);
  const lines = colours.map((colour, run) => {
    let [path, pen] = ['', 'M'];
    axes.forEach(({ values }, axis) => {
      const value = values[run] ?? null;
      if (value !== null) path += `${pen}${round(x(axis))} ${round(y(placers[axis]!(value)))}`;
      pen = value === null ? 'M' : 'L';
    });
    return path && inside[run] ? `<path d="${path}" fill="none" stroke="${inPicture(colour, colors)}"/>` : '';
  });
  const drawn = axes.map((axis, i) => {
    const { min, max } = extentOf(axis);
    const [low, high] = axis.categories ? [0, axis.categories.length - 1] : [min, max];
    return [
      `<path d="M${round(x(i))} ${PLACE.top}V${PLACE.top + PLACE.height}" stroke="${colors.soft}"/>`,
      text(x(i), PLACE.top - 6, shortName(axis.name).slice(0, 16), colors.text, 'text-anchor="middle"'),
      ...[low, high].map((value) => text(x(i) + 4, y(placers[i]!(value)) + (value === low ? 14 : 10), label(axis, value), colors.soft)),
    ].join('');
  });
  return head(title, `${inside.filter(Boolean).length} of ${colours.length} runs`, colors) + lines.join('') + drawn.join('');
}

/** A point for each run that has both values, and the line that fits them. */
export function fieldScatterGroup(title: string, [x, y]: readonly [Dimension, Dimension], colours: readonly string[], colors: Colors): string {
  const [placeX, placeY] = [placer(x), placer(y)];
  const points = colours.flatMap((colour, run) => {
    const [a, b] = [x.values[run] ?? null, y.values[run] ?? null];
    return a === null || b === null ? [] : [{ x: placeX(a), y: placeY(b), colour: inPicture(colour, colors) }];
  });
  const fit = x.categories || y.categories ? null : fitOf(points);
  const ends = fit && fitEnds(fit);
  const at = (point: { x: number; y: number }): string => `${round(PLACE.left + point.x * PLACE.width)} ${round(PLACE.top + (1 - point.y) * PLACE.height)}`;
  const [ex, ey] = [extentOf(x), extentOf(y)];
  return [
    head(title, fit ? fitText(fit) : `${points.length} runs`, colors),
    `<path d="M${PLACE.left} ${PLACE.top}v${PLACE.height}h${PLACE.width}" fill="none" stroke="${colors.grid}"/>`,
    text(PLACE.left, HEIGHT - 24, label(x, ex.min), colors.soft),
    text(WIDTH - RIGHT, HEIGHT - 24, label(x, ex.max), colors.soft, 'text-anchor="end"'),
    text(PLACE.left - 6, PLACE.top + PLACE.height, label(y, ey.min), colors.soft, 'text-anchor="end"'),
    text(PLACE.left - 6, PLACE.top + 8, label(y, ey.max), colors.soft, 'text-anchor="end"'),
    text(WIDTH / 2, HEIGHT - 8, shortName(x.name), colors.soft, 'text-anchor="middle"'),
    text(PLACE.left, PLACE.top - 8, shortName(y.name), colors.soft),
    ends ? `<path d="M${at(ends[0])}L${at(ends[1])}" stroke="${colors.text}" stroke-dasharray="6 4"/>` : '',
    ...points.map((point) => `<circle cx="${at(point).split(' ')[0]}" cy="${at(point).split(' ')[1]}" r="4" fill="${point.colour}"/>`),
  ].join('');
}

export function importanceGroup(title: string, importances: Importances, color: string, colors: Colors): string {
  const [from, width] = [200, WIDTH - 200 - 70];
  const rows = importances.parameters.slice(0, MAX_PARAMETERS).map(({ name, share }, i) => {
    const y = TOP + LINE * (i + 1);
    return text(12, y, shortName(name).slice(0, 28), colors.soft) + `<rect x="${from}" y="${y - 10}" width="${round(Math.max(1, share * width))}" height="10" fill="${color}"/>` + text(WIDTH - RIGHT, y, percent(share), colors.text, 'text-anchor="end"');
  });
  return head(title, importanceText(importances), colors) + rows.join('');
}
