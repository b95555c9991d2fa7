// A layout as JSON: in saved views, in the browser's storage, and in files that users give to each other. What comes from
// there is checked completely, because it may be from anyone.

import { smoothingOf, Y_SCALES } from '../../../chart/viewState';
import type { PanelX } from '../panel';
import {
  COLUMNS,
  MAX_EXPRESSION,
  MAX_PANELS,
  MAX_PATTERN,
  MAX_ROWS,
  MAX_SECTIONS,
  MAX_TITLE,
  MIN_COLUMNS,
  MIN_ROWS,
  newPanel,
  PANEL_KINDS,
  SCOPES,
  STATISTICS,
  type Layout,
  type LayoutPanel,
  type LayoutSection,
} from './layout';

export const VERSION = 1;
/** The server keeps no longer ones. */
export const MAX_BYTES = 256 * 1024;
export const MAX_TEXT = 20_000;
export const MAX_METRICS = 50;
const MAX_PERCENTILES = 11;

/** What is wrong in a file, and where. */
export class LayoutProblem extends Error {}

/** The JSON of a layout, without what a new panel has anyway. */
export function layoutData({ sections }: Layout): object {
  return { version: VERSION, sections: sections.map(({ id, title, folded, panels }) => ({ id, title, folded, panels: panels.map(panelData) })) };
}

function panelData(panel: LayoutPanel): object {
  const usual: Record<string, unknown> = { ...newPanel(panel.kind), smoothing: '' };
  const { smoothing, ...others } = panel;
  const all = { ...others, smoothing: smoothing ? `${smoothing.kind}:${smoothing.share}` : '' };
  const always = ['id', 'kind', 'columns', 'rows'];
  return Object.fromEntries(Object.entries(all).filter(([name, value]) => always.includes(name) || JSON.stringify(value) !== JSON.stringify(usual[name])));
}

export const layoutText = (layout: Layout): string => `${JSON.stringify(layoutData(layout), null, 2)}\n`;

/** The layout that a text is. Throws a LayoutProblem. */
export function layoutOfText(text: string): Layout {
  if (new TextEncoder().encode(text).length > MAX_BYTES) throw new LayoutProblem(`The layout is too long: expected at most ${MAX_BYTES / 1024} KiB.`);
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch {
    throw new LayoutProblem('This is not JSON.');
  }
  return layoutOf(data);
}

/** The layout that JSON describes. Throws a LayoutProblem. */
export function layoutOf(data: unknown): Layout {
  const layout = new Reader(data, 'layout');
  const version = layout.number('version', VERSION, 1, 1e6);
  if (version > VERSION) throw new LayoutProblem(`version: this layout is from a later version of runvitals (${version}); expected ${VERSION}.`);
  const seen = new Set<string>();
  const sections = layout.list('sections', MAX_SECTIONS).map((section) => sectionOf(section, seen));
  const panels = sections.reduce((sum, section) => sum + section.panels.length, 0);
  if (panels > MAX_PANELS) throw new LayoutProblem(`sections: ${panels} panels; expected at most ${MAX_PANELS}.`);
  return { sections };
}

function sectionOf(read: Reader, seen: Set<string>): LayoutSection {
  return {
    id: read.id(seen),
    title: read.text('title', MAX_TITLE),
    folded: read.flag('folded', false),
    panels: read.list('panels', MAX_PANELS).map((panel) => panelOf(panel, seen)),
  };
}

function panelOf(read: Reader, seen: Set<string>): LayoutPanel {
  const usual = newPanel(read.choice('kind', PANEL_KINDS, null));
  return {
    id: read.id(seen),
    kind: usual.kind,
    title: read.text('title', MAX_TITLE),
    columns: read.number('columns', usual.columns, MIN_COLUMNS, COLUMNS),
    rows: read.number('rows', usual.rows, MIN_ROWS, MAX_ROWS),
    metrics: read.texts('metrics', MAX_METRICS, MAX_EXPRESSION),
    pattern: read.text('pattern', MAX_PATTERN),
    each: read.flag('each', false),
    x: xOf(read),
    logx: read.flag('logx', false),
    across: read.text('across', MAX_EXPRESSION),
    scope: read.choice('scope', SCOPES, usual.scope),
    statistic: read.choice('statistic', STATISTICS, usual.statistic),
    points: read.flag('points', usual.points),
    percentiles: read.numbers('percentiles', usual.percentiles, MAX_PERCENTILES, 0, 100),
    y: read.choice('y', Y_SCALES, 'auto'),
    smoothing: smoothingOf(read.text('smoothing', 40)),
    text: read.text('text', MAX_TEXT),
  };
}

function xOf(read: Reader): PanelX {
  const text = read.text('x', MAX_EXPRESSION) || 'step';
  if (text === 'step' || text === 'relative' || text === 'wall' || /^metric:./.test(text)) return text as PanelX;
  throw new LayoutProblem(`${read.where}.x: expected step, relative, wall or metric:NAME, got ${shown(text)}.`);
}

const shown = (value: unknown): string => {
  const text = JSON.stringify(value) ?? typeof value;
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
};

/** Reads an object of JSON, and says where it is wrong. */
class Reader {
  readonly #fields: Map<string, unknown>;

  constructor(
    data: unknown,
    readonly where: string,
  ) {
    if (typeof data !== 'object' || data === null || Array.isArray(data)) throw new LayoutProblem(`${where}: expected an object, got ${shown(data)}.`);
    this.#fields = new Map(Object.entries(data));
  }

  #wrong(name: string, expected: string): LayoutProblem {
    return new LayoutProblem(`${this.where}.${name}: expected ${expected}, got ${shown(this.#fields.get(name))}.`);
  }

  text(name: string, most: number): string {
    const value = this.#fields.get(name) ?? '';
    if (typeof value !== 'string' || value.length > most) throw this.#wrong(name, `text of at most ${most} characters`);
    return value;
  }

  flag(name: string, usual: boolean): boolean {
    const value = this.#fields.get(name) ?? usual;
    if (typeof value !== 'boolean') throw this.#wrong(name, 'true or false');
    return value;
  }

  number(name: string, usual: number, least: number, most: number): number {
    const value = this.#fields.get(name) ?? usual;
    if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > most) throw this.#wrong(name, `a whole number from ${least} to ${most}`);
    return value;
  }

  choice<T extends string>(name: string, choices: readonly T[], usual: T | null): T {
    const value = this.#fields.get(name) ?? usual;
    const choice = choices.find((item) => item === value);
    if (choice === undefined) throw this.#wrong(name, choices.join(', '));
    return choice;
  }

  texts(name: string, most: number, longest: number): string[] {
    const value = this.#fields.get(name) ?? [];
    const fits = Array.isArray(value) && value.length <= most && value.every((item) => typeof item === 'string' && item.length <= longest);
    if (!fits) throw this.#wrong(name, `at most ${most} texts of at most ${longest} characters`);
    return value as string[];
  }

  numbers(name: string, usual: readonly number[], count: number, least: number, most: number): readonly number[] {
    const value = this.#fields.get(name) ?? usual;
    const fits = Array.isArray(value) && value.length <= count && value.every((item) => typeof item === 'number' && item >= least && item <= most);
    if (!fits) throw this.#wrong(name, `at most ${count} numbers from ${least} to ${most}`);
    return [...new Set(value as number[])];
  }

  list(name: string, most: number): Reader[] {
    const value = this.#fields.get(name) ?? [];
    if (!Array.isArray(value) || value.length > most) throw this.#wrong(name, `a list of at most ${most}`);
    return value.map((item, i) => new Reader(item, `${this.where}.${name}[${i}]`));
  }

  /** An id that is not in `seen`, which gets it. */
  id(seen: Set<string>): string {
    const value = this.#fields.get('id');
    if (typeof value !== 'string' || !/^[a-z0-9]{1,16}$/.test(value)) throw this.#wrong('id', '1 to 16 small letters and digits');
    if (seen.has(value)) throw this.#wrong('id', 'an id that nothing else in the layout has');
    seen.add(value);
    return value;
  }
}
