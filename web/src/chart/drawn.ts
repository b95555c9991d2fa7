// What a chart draws: which of its lines, in which colours, smoothed or as one band.

import { dashOf, lineColor, type PaletteName } from './palette';
import { align, spread, summed, type Aligned, type Line, type Points } from './points';
import type { Value } from '../base/api';
import { smoothed, type Smoothing } from './smoothing';
import { OUTLIER_SCORE, outlierScores } from './summary';
import type { Mode } from './viewState';

/** More lines than this are drawn as one band from the lowest to the highest, with their mean. */
export const MAX_LINES = 12;
/** More devices than this are rows of a heatmap. */
export const MAX_DEVICES = 8;
/** A band behind each line tells something only while there are few: then no spike is lost in the mean of its bucket. */
export const MAX_BANDS = MAX_LINES;
/** Lines that are drawn beside a band because they are far from the others. */
const MAX_BESIDE = 5;

/** A line on a chart that shows one series, or a band of all of them. */
export interface Drawn {
  /** null: it shows several. */
  id: string | null;
  label: string;
  color: string;
  /** Lengths of its dashes; empty: it is solid. */
  dash: number[];
  points: Points;
  notFinite?: readonly number[] | undefined;
  band: boolean;
  /** The values before smoothing, drawn behind the line. */
  raw: Value[] | null;
  width: number;
  /** Others are pinned, and this is not. */
  faded: boolean;
}

export interface Drawing {
  mode: Mode;
  dark: boolean;
  palette: PaletteName;
  /** Its width is counted along the axis as it is drawn: in what `level` returns. */
  smoothing: (Smoothing & { level?: (x: number) => number }) | null;
  hidden: ReadonlySet<string>;
  pinned: ReadonlySet<string>;
  /** Many lines are drawn as their sum, not as their mean. */
  summed?: boolean;
}

/** More lines are thin: they cost a third of the time to draw, and lie over each other. */
const MANY_LINES = 50;

/** How a chart with so many lines is drawn unless the user chose. */
export function usualMode(lines: number, ofDevices: boolean, ofRuns = false): Mode {
  if (ofRuns) return 'lines';
  if (ofDevices && lines > MAX_DEVICES) return 'heatmap';
  return lines > MAX_LINES ? 'band' : 'lines';
}

export function drawn(lines: readonly Line[], how: Drawing): Drawn[] {
  const visible = lines.filter(({ id }) => !how.hidden.has(id));
  if (how.mode === 'lines' || visible.length < 2) {
    const pinned = visible.some(({ id }) => how.pinned.has(id));
    const inOrder = [...visible].sort((a, b) => Number(how.pinned.has(a.id)) - Number(how.pinned.has(b.id)));
    const many = visible.length > MANY_LINES;
    return inOrder.map((line) => ownLine(line, how, visible.length <= MAX_BANDS, pinned, many));
  }
  if (how.summed) return [{ ...ownLine({ id: '', label: `sum of ${visible.length}`, slot: 0, ofMany: true, points: summed(visible) }, how, false, false), id: null }];
  const mean = { id: '', label: `mean of ${visible.length}`, slot: 0, ofMany: true, points: spread(visible) };
  const beside = besideBand(visible, how.pinned).map((line) => ownLine(line, how, false, false));
  return [{ ...ownLine(mean, how, true, false), id: null }, ...beside];
}

/** Pinned lines, and those that are farthest from the others. */
function besideBand(lines: readonly Line[], pinned: ReadonlySet<string>): Line[] {
  const scores = outlierScores(lines);
  const far = [...lines.keys()].filter((i) => scores[i]! > OUTLIER_SCORE && !pinned.has(lines[i]!.id));
  far.sort((a, b) => scores[b]! - scores[a]!);
  return [...lines.filter(({ id }) => pinned.has(id)), ...far.slice(0, MAX_BESIDE).map((i) => lines[i]!)];
}

function ownLine({ id, label, slot, dashed, ofMany, points, notFinite }: Line, how: Drawing, banded: boolean, othersPinned: boolean, many = false): Drawn {
  const isPinned = how.pinned.has(id);
  const dash = dashed ? dashOf(slot, how.palette) : [];
  const plain = { id, label, notFinite, color: lineColor(slot, how.dark, how.palette), dash, width: isPinned ? 2.6 : many ? 1 : 1.4 };
  const faded = othersPinned && !isPinned;
  if (!how.smoothing) return { ...plain, points, band: banded && points.low !== null, raw: null, faded };
  const { level } = how.smoothing;
  const y = smoothed(level ? points.x.map(level) : points.x, points.y, how.smoothing);
  // The band of a mean stays; behind a single line, its own values are drawn instead.
  const keepsBand = ofMany === true && banded;
  return { ...plain, points: { ...points, y }, band: keepsBand, raw: keepsBand ? null : points.y, faded };
}

/** The columns of a chart: its lines first, then raw values of those that are smoothed, then low and high of those with a band. */
export function columnsOf(lines: readonly Drawn[], positiveOnly: boolean, logX = false): Aligned {
  const values = align(
    lines.map(({ points, band, raw }) => ({
      x: points.x,
      columns: [points.y, ...(raw ? [raw] : []), ...(band ? [points.low!, points.high!] : [])],
    })),
    logX,
  );
  const [own, raws, bands]: Aligned['columns'][] = [[], [], []];
  let i = 0;
  for (const { band, raw } of lines) {
    own!.push(values.columns[i++]!);
    if (raw) raws!.push(values.columns[i++]!);
    if (band) bands!.push(values.columns[i++]!, values.columns[i++]!);
  }
  const columns = [...own!, ...raws!, ...bands!];
  return { x: values.x, columns: positiveOnly ? columns.map(withoutNegatives) : columns };
}

/** A logarithmic axis has no place for zero and less: they are gaps. */
const withoutNegatives = (column: Aligned['columns'][number]): Aligned['columns'][number] =>
  column.map((value) => (typeof value === 'number' && value <= 0 ? null : value));

/** What makes two drawings the same plot with other data; anything else needs a new plot. */
export const shape = (lines: readonly Drawn[]): string =>
  lines.map(({ label, color, dash, band, raw, width, faded }) => [label, color, dash, band, raw !== null, width, faded].join('\t')).join('\n');
