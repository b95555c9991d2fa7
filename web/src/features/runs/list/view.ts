// The view of the runs table in the address: filter, columns, sort order, groups. A saved view keeps the same.

import type { Params } from '../../../base/api';
import { own } from '../../../base/own';
import { STATES, valuesOf, withValues } from './filterText';

export interface SortTerm {
  /** The API's name: `started_ms`, `name`, `config.lr`, … */
  name: string;
  descending: boolean;
}

/** Which runs are listed, and how. */
export interface RunsView {
  filter: string;
  /** null: the order that suits the runs. */
  sort: SortTerm[] | null;
  /** Names of columns in their order; null: those that suit the runs. */
  columns: string[] | null;
  /** Those of the columns that stay in place while the others are scrolled. */
  pinned: string[];
  /** One group for each combination of their values; empty: no groups. */
  by: string[];
  /** Keys of the groups whose runs are shown. */
  open: string[];
  trash: boolean;
  /** What the totals of columns are. */
  total: Total;
  /** Widths of columns that the user chose, in pixels. */
  widths: Readonly<Record<string, number>>;
}

export const TOTALS = ['mean', 'min', 'max', 'sum'] as const;
export type Total = (typeof TOTALS)[number];
/** The narrowest and the widest column. */
export const WIDTH_LIMITS = [60, 800] as const;

export const NEWEST: readonly SortTerm[] = [{ name: 'started_ms', descending: true }];
export const MAX_SORTED = 4; // as the server limits it

/** A list as one parameter: with commas between, and those inside escaped. */
export const joined = (names: readonly string[]): string => names.map((name) => name.replace(/[%,]/g, encodeURIComponent)).join(',');
export const split = (text: string | null): string[] => (text ? text.split(',').map((part) => part.replaceAll('%2C', ',').replaceAll('%25', '%')) : []);

/** `-name`: descending. */
export const signed = ({ name, descending }: SortTerm): string => (descending ? `-${name}` : name);

const sortText = (sort: readonly SortTerm[]): string => joined(sort.map(signed));

function sortOf(query: URLSearchParams): SortTerm[] | null {
  const terms = split(query.get('sort')).slice(0, MAX_SORTED).map((term): SortTerm => ({ name: term.replace(/^-/, ''), descending: term.startsWith('-') }));
  return terms.length > 0 ? terms : null;
}

/** `name:width` of each column. */
const widthsText = (widths: RunsView['widths']): string => joined(Object.entries(widths).map(([name, width]) => `${name}:${width}`));

function widthsIn(text: string | null): Record<string, number> {
  const pairs = split(text).map((pair): [string, number] => [pair.slice(0, pair.lastIndexOf(':')), Number(pair.slice(pair.lastIndexOf(':') + 1))]);
  return Object.fromEntries(pairs.filter(([name, width]) => name !== '' && Number.isFinite(width)).map(([name, width]) => [name, limitedWidth(width)]));
}

export const limitedWidth = (width: number): number => Math.round(Math.min(WIDTH_LIMITS[1], Math.max(WIDTH_LIMITS[0], width)));

/** The view that an address describes. Addresses from before the filter had a grammar mean the same as then. */
export function viewOf(query: URLSearchParams): RunsView {
  let filter = query.get('q') ?? '';
  const states = split(query.get('state')).filter((state) => STATES.some((known) => known === state));
  if (states.length > 0) filter = withValues(filter, 'state', states);
  const author = query.get('author');
  if (author) filter = withValues(filter, 'user', [author]);
  const columns = query.get('columns');
  return {
    filter,
    sort: sortOf(query),
    columns: columns === null ? null : split(columns),
    pinned: split(query.get('pinned')),
    by: split(query.get('by')),
    open: split(query.get('expanded')), // not `open`: that is the enlarged chart of a workspace
    trash: query.get('trash') === '1',
    total: TOTALS.find((total) => total === query.get('total')) ?? 'mean',
    widths: widthsIn(query.get('widths')),
  };
}

/** The parameters of the address to set for a view. */
export function changesFor(view: RunsView): Record<string, string | null> {
  return {
    q: view.filter || null,
    sort: view.sort === null ? null : sortText(view.sort),
    columns: view.columns === null ? null : joined(view.columns),
    pinned: joined(view.pinned) || null,
    by: joined(view.by) || null,
    expanded: joined(view.open) || null,
    trash: view.trash ? '1' : null,
    total: view.total === 'mean' ? null : view.total,
    widths: widthsText(view.widths) || null,
    // of addresses that were made before
    state: null,
    author: null,
  };
}

/** The sort order after a click on a column's heading; with `add`, besides the order that there is. */
export function sortedBy(sort: readonly SortTerm[], name: string, descendingFirst: boolean, add: boolean): SortTerm[] {
  const now = sort.find((term) => term.name === name);
  const reversed: SortTerm = { name, descending: now ? !now.descending : descendingFirst };
  if (!add) return [reversed];
  if (!now) return [...sort, reversed].slice(-MAX_SORTED);
  // A third click takes the column out, unless it is the only one.
  if (now.descending !== descendingFirst && sort.length > 1) return sort.filter((term) => term !== now);
  return sort.map((term) => (term === now ? reversed : term));
}

/** The names with one of them in another place: before or after another name. */
export function moved(names: readonly string[], name: string, beside: string, after: boolean): string[] {
  if (name === beside) return [...names];
  const others = names.filter((other) => other !== name);
  others.splice(others.indexOf(beside) + (after ? 1 : 0), 0, name);
  return others;
}

/** The place that a key moves a column to, one to the left or right. */
export function shifted(names: readonly string[], name: string, by: -1 | 1): string[] {
  const beside = names[names.indexOf(name) + by];
  return beside === undefined ? [...names] : moved(names, name, beside, by > 0);
}

/** Where the runs are: what the page is about, apart from the view. */
export interface Scope {
  project: string | null;
  entity: string | null;
}

const of = (columns: readonly string[], prefix: string): string[] => columns.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));

export const SPARKLINE = 'sparkline.';
const FETCHED = /^(config|summary|system)\./;

/** The columns of newest values, each with the mean that stands there once a run has ended. */
export const MEANS: Readonly<Record<string, string>> = { cpu: 'system.host_cpu', memory: 'system.memory', gpu: 'system.gpu' };

/** The columns whose values the server has to be asked for. */
export const fetched = (columns: readonly string[]): string[] => columns.filter((name) => FETCHED.test(name));

/** Parameters of `/runs` that say which runs. */
export function filterParams(view: Pick<RunsView, 'filter' | 'trash'>, scope: Scope, terms: readonly string[] = []): Params {
  return {
    project: scope.project,
    entity: scope.entity,
    filter: [view.filter.trim(), ...terms].filter(Boolean).join(' ') || null,
    deleted: view.trash ? 'true' : null,
  };
}

/** The order for the server, which takes a single name without a sign as descending. */
const sortParams = (sort: readonly SortTerm[]): Params => ({
  sort: sort.map(signed).join(','),
  descending: sort.length === 1 && !sort[0]!.descending ? 'false' : null,
});

/** All parameters of `/runs` but those of the page. */
export function listParams(view: RunsView, scope: Scope, columns: readonly string[], terms: readonly string[] = []): Params {
  return {
    ...filterParams(view, scope, terms),
    ...sortParams(view.sort ?? NEWEST),
    columns: [...new Set([...fetched(columns), ...columns.flatMap((name) => own(MEANS, name) ?? [])])],
    sparklines: of(columns, SPARKLINE),
  };
}

/** Whether a filter selects some of the runs only. */
export const isFiltered = (view: RunsView): boolean => view.filter.trim() !== '';

/** The filter after a state's button was pressed. */
export function stateToggled(filter: string, state: string): string {
  const chosen = valuesOf(filter, 'state');
  return withValues(filter, 'state', STATES.filter((item) => chosen.includes(item) !== (item === state)));
}

/** The filter after the button "my runs" was pressed. */
export function userToggled(filter: string, user: string): string {
  return withValues(filter, 'user', valuesOf(filter, 'user').includes(user) ? [] : [user]);
}
