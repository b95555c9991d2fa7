// The list of runs in the address: filter, sort order, page. The server filters and sorts.

import type { Params, State } from './api';

export const PAGE_SIZE = 100;
export const STATES: readonly State[] = ['running', 'finished', 'failed', 'crashed', 'stopped', 'lost'];

export type Column = 'state' | 'run' | 'author' | 'started' | 'duration';
/** The API's names of the sortable columns. */
const SORTED_BY: Record<Column, string> = { state: 'state', run: 'name', author: 'author', started: 'started_ms', duration: 'duration_ms' };
/** Texts sort ascending at first, times and numbers descending. */
const FROM_THE_START: readonly Column[] = ['state', 'run', 'author'];

/** Which runs are listed. `after`: the `next` of the previous page; `page` counts from 1. */
export interface Wanted {
  words: string;
  states: State[];
  /** Only of projects of this team or user. */
  entity: string | null;
  /** Only runs of this user. */
  author: string | null;
  /** Under a heading for each author, in the order of their names. */
  byAuthor: boolean;
  column: Column;
  descending: boolean;
  trash: boolean;
  after: string | null;
  page: number;
}

/** The list that an address describes; invalid values are ignored. */
export function wantedOf(query: URLSearchParams): Wanted {
  const sort = query.get('sort') ?? '';
  const after = query.get('after');
  const page = Number(query.get('page') ?? 1);
  const byAuthor = query.get('by') === 'author';
  return {
    words: query.get('q') ?? '',
    states: STATES.filter((state) => (query.get('state') ?? '').split(',').includes(state)),
    entity: query.get('entity'),
    author: query.get('author'),
    byAuthor,
    column: byAuthor ? 'author' : Object.hasOwn(SORTED_BY, sort) ? (sort as Column) : 'started',
    descending: !byAuthor && query.get('order') !== 'up',
    trash: query.get('trash') === '1',
    after,
    page: after !== null && Number.isInteger(page) && page > 1 ? page : 1,
  };
}

/** `user:ada` among the words of a search. */
const USER = /(^|\s)user:(\S+)/;

/** The same as parameters of `/runs`. */
export function paramsOf(wanted: Wanted, project: string | null): Params {
  const typed = USER.exec(wanted.words);
  return {
    project,
    text: wanted.words.replace(USER, '').trim() || null,
    state: wanted.states,
    entity: wanted.entity,
    author: wanted.author ?? typed?.[2] ?? null,
    sort: SORTED_BY[wanted.column],
    descending: String(wanted.descending),
    deleted: wanted.trash ? 'true' : null,
    limit: PAGE_SIZE,
    after: wanted.after,
  };
}

/** Whether a filter is set. */
export const isFiltered = (wanted: Wanted): boolean => wanted.words.trim() !== '' || wanted.states.length > 0 || wanted.author !== null;

/** A changed list starts at its first page. */
const FIRST_PAGE = { after: null, page: null };

export function searched(words: string): Record<string, string | null> {
  return { q: words, ...FIRST_PAGE };
}

/** Changes of the address when a state's button is pressed. */
export function toggled(wanted: Wanted, state: State): Record<string, string | null> {
  const states = STATES.filter((one) => wanted.states.includes(one) !== (one === state));
  return { state: states.join(','), ...FIRST_PAGE };
}

/** Changes of the address when a column's heading is pressed; a second time reverses the order. */
export function sortedBy(wanted: Wanted, column: Column): Record<string, string | null> {
  const descending = column === wanted.column ? !wanted.descending : !FROM_THE_START.includes(column);
  return { sort: column === 'started' ? null : column, order: descending ? null : 'up', by: null, ...FIRST_PAGE };
}

/** Changes of the address: runs of one user only, or of all (null). */
export const byUser = (author: string | null): Record<string, string | null> => ({ author, ...FIRST_PAGE });

/** Changes of the address when grouping by author is switched. */
export const groupedByAuthor = (grouped: boolean): Record<string, string | null> => ({ by: grouped ? 'author' : null, sort: null, order: null, ...FIRST_PAGE });

/** Without any filter. */
export const CLEARED: Record<string, string | null> = { q: null, state: null, author: null, ...FIRST_PAGE };

export const nextPage = (page: number, next: string): Record<string, string | null> => ({
  after: next,
  page: String(page + 1),
});

/** `101–200 of 10,000`. */
export function placeText(page: number, shown: number, total: number): string {
  const first = (page - 1) * PAGE_SIZE + 1;
  return `${count(first)}–${count(first + shown - 1)} of ${count(total)}`;
}

export const count = (number: number): string => number.toLocaleString('en-US');
