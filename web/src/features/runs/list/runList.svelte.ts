// What the runs table lists: all runs that match, or groups of them with the runs of those that are open.

import { asApiError, get, type ApiError, type Params, type RunRow } from '../../../base/api';
import { equalTerm } from './filterText';
import { RunRows } from './runRows.svelte';
import { filterParams, listParams, NEWEST, signed, type RunsView, type Scope } from './view';
import type { RunGroup, RunGroups } from '../../../base/wire';

/** Groups that are requested at once. */
const GROUPS = 100;
const MAX_GROUPS = 1000;

/** A part of the list: all runs, or a group's heading with its runs, if it is open. */
export interface Section {
  key: string;
  group: RunGroup | null;
  rows: RunRows | null;
}

export type Item =
  | { kind: 'group'; section: Section; group: RunGroup }
  | { kind: 'run'; section: Section; index: number; run: RunRow | undefined }
  | { kind: 'more' };

/** What a group is called in the address: the values in the order of `by`. */
export const keyOfGroup = (group: RunGroup, by: readonly string[]): string => JSON.stringify(by.map((name) => group.values[name] ?? null));

const height = ({ group, rows }: Section): number => (group ? 1 : 0) + (rows?.total ?? 0);

/** The item at a place of the list, which may be a run whose row is not there yet. */
export function itemAt(sections: readonly Section[], position: number): Item {
  let index = position;
  for (const section of sections) {
    const size = height(section);
    if (index >= size) {
      index -= size;
      continue;
    }
    const { group, rows } = section;
    if (group && index === 0) return { kind: 'group', section, group };
    const row = index - (group ? 1 : 0);
    return { kind: 'run', section, index: row, run: rows?.row(row) };
  }
  return { kind: 'more' };
}

export class RunList {
  /** Null: the list has no groups. */
  groups = $state.raw<readonly RunGroup[] | null>(null);
  /** What `groups` are grouped by. */
  by = $state.raw<readonly string[]>([]);
  groupsError = $state.raw<ApiError | null>(null);
  moreGroups = $state<string | null>(null);
  #all = new RunRows();
  #open = $state.raw<ReadonlyMap<string, RunRows>>(new Map());
  #view: RunsView | null = null;
  #scope: Scope = { project: null, entity: null };
  #columns: readonly string[] = [];
  #asked = '';
  #request = new AbortController();
  /** The parts of the list, in their order. */
  sections = $derived.by((): Section[] => {
    if (this.groups === null) return [{ key: '', group: null, rows: this.#all }];
    return this.groups.map((group) => {
      const key = keyOfGroup(group, this.by);
      return { key, group, rows: this.#open.get(key) ?? null };
    });
  });
  /** How many lines the list has. */
  size = $derived(this.sections.reduce((sum, section) => sum + height(section), this.moreGroups === null ? 0 : 1));
  /** How many runs match; null: not known yet. A run may be in several groups. */
  total = $derived(this.#all.total);
  error = $derived(this.#all.error ?? this.groupsError ?? [...this.#open.values()].find(({ error }) => error)?.error ?? null);
  stale = $derived(this.#all.stale);
  /** The rows that are there, for what depends on all of them. */
  loaded = $derived([...this.#all.loaded, ...[...this.#open.values()].flatMap((rows) => rows.loaded)]);

  /** Show the list of a view. */
  async list(view: RunsView, scope: Scope, columns: readonly string[]): Promise<void> {
    this.#view = view;
    this.#scope = scope;
    this.#columns = columns;
    const all = this.#all.list(listParams(view, scope, columns));
    if (view.by.length === 0) {
      this.#request.abort();
      this.#closeGroups();
      this.groups = null;
      this.groupsError = null;
      this.moreGroups = null;
      this.#asked = '';
      await all;
      return;
    }
    const asked = JSON.stringify(this.#groupParams());
    if (asked !== this.#asked) {
      this.#asked = asked;
      await this.#loadGroups(GROUPS);
    }
    await Promise.all([all, this.#openGroups()]);
  }

  /** The lines from one to another are in view. */
  show(first: number, last: number): void {
    let start = 0;
    for (const section of this.sections) {
      const head = section.group ? 1 : 0;
      const end = start + height(section);
      if (section.rows && start + head <= last && end > first) section.rows.show(Math.max(0, first - start - head), Math.min(last, end - 1) - start - head);
      start = end;
    }
  }

  async refresh(): Promise<void> {
    if (this.#view === null) return;
    await this.#all.refresh();
    if (this.groups === null) return;
    await this.#loadGroups(Math.min(MAX_GROUPS, Math.max(GROUPS, this.groups.length)));
    await Promise.all([...this.#open.values()].map((rows) => rows.refresh()));
  }

  /** Load the groups after those that are there. */
  async loadMoreGroups(): Promise<void> {
    await this.#loadGroups(GROUPS, this.moreGroups);
  }

  /** A changed row, wherever it is. */
  replace(run: RunRow): void {
    for (const rows of [this.#all, ...this.#open.values()]) rows.replace(run);
  }

  close(): void {
    this.#request.abort();
    this.#all.close();
    this.#closeGroups();
  }

  #closeGroups(): void {
    for (const rows of this.#open.values()) rows.close();
    if (this.#open.size > 0) this.#open = new Map();
  }

  #groupParams(): Params {
    const view = this.#view!;
    const params = listParams(view, this.#scope, this.#columns);
    const sort = (view.sort ?? NEWEST).filter(({ name }) => view.by.includes(name) || /^(config|summary|system)\./.test(name));
    return {
      ...filterParams(view, this.#scope),
      by: view.by,
      columns: params.columns,
      sort: sort.map(signed).join(',') || null,
    };
  }

  async #loadGroups(limit: number, after: string | null = null): Promise<void> {
    this.#request.abort();
    const request = (this.#request = new AbortController());
    const { by } = this.#view!;
    try {
      const page = await get<RunGroups>('runs/groups', { ...this.#groupParams(), limit, after }, request.signal);
      if (request.signal.aborted) return;
      this.groups = after === null ? page.groups : [...(this.groups ?? []), ...page.groups];
      this.by = by;
      this.moreGroups = page.next;
      this.groupsError = null;
    } catch (problem) {
      if (!request.signal.aborted) this.groupsError = asApiError(problem);
    }
  }

  /** Have the rows of each open group, and none of others. */
  async #openGroups(): Promise<void> {
    const view = this.#view!;
    const open = new Map<string, RunRows>();
    const lists: Promise<void>[] = [];
    for (const group of this.groups ?? []) {
      const key = keyOfGroup(group, this.by);
      if (!view.open.includes(key)) continue;
      const rows = this.#open.get(key) ?? new RunRows();
      open.set(key, rows);
      lists.push(rows.list(listParams(view, this.#scope, this.#columns, termsOfGroup(group, this.by))));
    }
    for (const [key, rows] of this.#open) {
      if (!open.has(key)) rows.close();
    }
    if (open.size > 0 || this.#open.size > 0) this.#open = open;
    await Promise.all(lists);
  }
}

/** The terms of the filter that select the runs of a group. */
export const termsOfGroup = (group: RunGroup, by: readonly string[]): string[] =>
  by.map((name) => equalTerm(name, group.values[name] ?? null));
