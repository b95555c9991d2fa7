// Comparison of runs: what the API answers, its columns as dimensions, and what is chosen in the address.

import type { RunRow, Value } from '../../base/api';
import type { ComparedRuns, FactRow, Json } from '../../base/wire';

export const SECTIONS = ['run', 'config', 'git', 'packages', 'hardware', 'environment'] as const;
export type Section = (typeof SECTIONS)[number];
export const SECTION_TITLES: Record<Section, string> = {
  run: 'Run',
  config: 'Config',
  git: 'Git',
  packages: 'Packages',
  hardware: 'Hardware',
  environment: 'Environment',
};
export const MAX_RUNS = 100;

export type Goal = 'minimize' | 'maximize';

export type Comparison = ComparedRuns;

/** A fact of a run as text; null: the run does not have it. */
export function factText(row: FactRow, run: number): string | null {
  if (row.absent.includes(run)) return null;
  const value = row.values.length === 1 && !row.differs ? row.values[0] : row.values[run];
  return typeof value === 'string' ? value : JSON.stringify(value ?? null);
}

/** The rows to show, by section in a fixed order. `words`: all occur in the name. */
export function shownFacts(rows: readonly FactRow[], all: boolean, words: string): [Section, FactRow[]][] {
  const terms = words.toLowerCase().split(/\s+/).filter(Boolean);
  const shownRows = rows.filter((row) => (all || row.differs) && terms.every((word) => row.name.toLowerCase().includes(word)));
  return SECTIONS.map((section): [Section, FactRow[]] => [section, shownRows.filter((row) => row.section === section)]).filter(([, rowsOfSection]) => rowsOfSection.length > 0);
}

/** A line of the table of facts: a fact, how many rare ones are folded, or the head of a section. */
export interface FactLine {
  section: Section;
  row: FactRow | null;
  rare: number;
}

/** So few runs do not fold anything. */
const FOLDING_RUNS = 10;

/** Whether at most a tenth of many runs have the fact. */
export const isRare = ({ absent }: FactRow, runs: number): boolean => runs >= FOLDING_RUNS && runs - absent.length <= runs / 10;

/** `isOpen`: whether the rare facts of a section are among the lines. */
export const factLines = (sections: readonly [Section, FactRow[]][], runs: number, isOpen: (section: Section) => boolean): FactLine[] =>
  sections.flatMap(([section, rows]): FactLine[] => {
    const rare = isOpen(section) ? [] : rows.filter((row) => isRare(row, runs));
    const shownRows = rare.length > 0 ? rows.filter((row) => !isRare(row, runs)) : rows;
    const folded = rare.length > 0 ? [{ section, row: null, rare: rare.length }] : [];
    return [{ section, row: null, rare: 0 }, ...shownRows.map((row) => ({ section, row, rare: 0 })), ...folded];
  });

/** What more than half of at least three runs have; null: nothing is usual. */
export function usualText(row: FactRow, runs: number): string | null {
  if (!row.differs || runs < 3) return null;
  const counts = new Map<string | null, number>();
  for (let run = 0; run < runs; run++) {
    const text = factText(row, run);
    const count = (counts.get(text) ?? 0) + 1;
    if (count > runs / 2) return text;
    counts.set(text, count);
  }
  return null;
}

/** The best runs of a row by a goal; none if all are equally good. */
export function bestOf(values: readonly Value[], goal: Goal | null): number[] {
  const numbers = values.filter((value): value is number => value !== null);
  if (goal === null || new Set(numbers).size < 2) return [];
  const best = goal === 'minimize' ? Math.min(...numbers) : Math.max(...numbers);
  return [...values.keys()].filter((i) => values[i] === best);
}

/** What runs can be placed by: a config value, a number of the summary, or a statistic of the system. */
export interface Dimension {
  /** `config.lr`, `summary.loss`, `system.gpu`. */
  name: string;
  /** Of each run: a number, or the place of its category; null: the run has none. */
  values: Value[];
  unit: string;
  /** Of a category: what the places mean. Null: the values are numbers. */
  categories: string[] | null;
  /** All runs have the same. */
  constant: boolean;
}

const MAX_CATEGORIES = 24;

/** All dimensions in which at least one run has a value. Texts with too many different values are left out. */
export function dimensionsOf({ runs, facts, statistics }: Pick<Comparison, 'runs' | 'facts' | 'statistics'>): Dimension[] {
  const dimensions: Dimension[] = [];
  for (const row of facts) {
    if (row.section !== 'config') continue;
    const dimension = dimensionOf(
      `config.${row.name}`,
      runs.map((_, i) => (row.absent.includes(i) ? null : row.differs ? (row.values[i] ?? null) : (row.values[0] ?? null))),
    );
    if (dimension) dimensions.push(dimension);
  }
  for (const { name, unit, values } of statistics) {
    if (values.some((value) => value !== null)) dimensions.push({ name, unit, values, categories: null, constant: isConstant(values) });
  }
  return dimensions;
}

/** A dimension from a value of each run; null: it cannot be one. */
export function dimensionOf(name: string, values: readonly Json[]): Dimension | null {
  const present = values.filter((value) => value !== null);
  if (present.length === 0) return null;
  if (present.every((value) => typeof value === 'number')) {
    const numbers = values as Value[];
    return { name, unit: '', values: numbers, categories: null, constant: isConstant(numbers) };
  }
  const texts = values.map((value) => (value === null ? null : typeof value === 'string' ? value : JSON.stringify(value)));
  const categories = [...new Set(texts.filter((text): text is string => text !== null))].sort(new Intl.Collator('en', { numeric: true }).compare);
  if (categories.length > MAX_CATEGORIES) return null;
  const indexes = texts.map((text) => (text === null ? null : categories.indexOf(text)));
  return { name, unit: '', values: indexes, categories, constant: isConstant(indexes) };
}

const isConstant = (values: readonly Value[]): boolean => new Set(values).size < 2;

export interface Extent {
  min: number;
  max: number;
}

/** From the lowest to the highest value; widened where all are the same. */
export function extentOf({ values, categories }: Dimension): Extent {
  if (categories) return { min: -0.5, max: categories.length - 0.5 };
  const numbers = values.filter((value): value is number => value !== null && Number.isFinite(value));
  const [min, max] = [Math.min(...numbers), Math.max(...numbers)];
  if (numbers.length === 0) return { min: 0, max: 1 };
  if (min < max) return { min, max };
  const margin = Math.abs(min) / 2 || 1;
  return { min: min - margin, max: max + margin };
}

/** Whether a logarithmic scale tells more: all values are positive and span three powers of ten. */
export function suitsLog({ values, categories }: Dimension): boolean {
  if (categories) return false;
  const numbers = values.filter((value): value is number => value !== null);
  return numbers.length > 1 && Math.min(...numbers) > 0 && Math.max(...numbers) >= 1000 * Math.min(...numbers);
}

/** Where a value is between the ends of a dimension, from 0 to 1. */
export function placeOf(value: number, { min, max }: Extent, log: boolean): number {
  const [a, b, x] = log ? [Math.log(min), Math.log(max), Math.log(value)] : [min, max, value];
  return (x! - a!) / (b! - a!);
}

/** The value at a place. */
export function valueAt(share: number, { min, max }: Extent, log: boolean): number {
  return log ? Math.exp(Math.log(min) + share * (Math.log(max) - Math.log(min))) : min + share * (max - min);
}

/** The colours of values by a scale; the best end is the bright one, where it is known. */
export function valueColours(by: Dimension, goal: Goal | null, dark: boolean): string[] {
  const [extent, log] = [extentOf(by), suitsLog(by)];
  return by.values.map((value) => {
    if (value === null) return 'var(--faint)';
    const share = placeOf(value, extent, log);
    return scaleColour(goal === 'minimize' ? 1 - share : share, dark);
  });
}

/** What is selected, by dimension. */
export type Brushes = ReadonlyMap<string, Extent>;

/** Which runs are within all brushes. A run without a value is in none. */
export function selected(dimensions: readonly Dimension[], brushes: Brushes, runs: number): boolean[] {
  const active = dimensions.filter(({ name }) => brushes.has(name));
  return Array.from({ length: runs }, (_, run) =>
    active.every(({ name, values }) => {
      const value = values[run] ?? null;
      const { min, max } = brushes.get(name)!;
      return value !== null && value >= min && value <= max;
    }),
  );
}

/** `config.lr:0.001:0.1;…` of an address. */
export function brushesOf(text: string | null): Map<string, Extent> {
  const extents = new Map<string, Extent>();
  for (const part of (text ?? '').split(';')) {
    const match = /^(.+):([^:]+):([^:]+)$/.exec(part);
    const [min, max] = [Number(match?.[2]), Number(match?.[3])];
    if (match && Number.isFinite(min) && Number.isFinite(max) && min <= max) extents.set(decodeURIComponent(match[1]!), { min, max });
  }
  return extents;
}

export const brushesText = (brushes: Brushes): string =>
  [...brushes].map(([name, { min, max }]) => `${encodeURIComponent(name)}:${Number(min.toPrecision(8))}:${Number(max.toPrecision(8))}`).join(';');

const MAX_AXES = 8;

/** The axes to begin with: what differs, config before results. */
export function usualAxes(dimensions: readonly Dimension[]): string[] {
  const differing = dimensions.filter(({ constant }) => !constant).map(({ name }) => name);
  const config = differing.filter((name) => name.startsWith('config.'));
  const results = differing.filter((name) => !name.startsWith('config.'));
  const ofResults = Math.min(results.length, Math.max(MAX_AXES / 2, MAX_AXES - config.length));
  return [...config.slice(0, MAX_AXES - ofResults), ...results.slice(0, ofResults)];
}

/** The ends and the middle of cividis, a scale of colours for any colour vision, darker on light pages. */
const SCALES = {
  light: [
    [0, 34, 78],
    [87, 93, 109],
    [166, 137, 30],
  ],
  dark: [
    [86, 132, 214],
    [165, 160, 150],
    [254, 232, 56],
  ],
} as const;

/** The colour of a place from 0 to 1. */
export function scaleColour(share: number, dark: boolean): string {
  const scale = SCALES[dark ? 'dark' : 'light'];
  const at = Math.min(1, Math.max(0, share)) * (scale.length - 1);
  const low = Math.min(scale.length - 2, Math.floor(at));
  const parts = scale[low]!.map((from, i) => Math.round(from + (scale[low + 1]![i]! - from) * (at - low)));
  return `rgb(${parts.join(' ')})`;
}

/** `summary.loss` without its section, for headings. */
export const shortName = (name: string): string => name.replace(/^(config|summary|system)\./, '');
