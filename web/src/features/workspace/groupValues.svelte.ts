// What runs are grouped by in the table, for the lines of their groups on charts.

import { get, type RunRow } from '../../base/api';
import type { RunPage } from '../../base/wire';

/** The names that the table groups by, as the address has them: with commas between. */
export const groupingOf = (text: string): string[] =>
  text
    .split(',')
    .filter(Boolean)
    .map((name) => name.replaceAll('%2C', ',').replaceAll('%25', '%'));

/** Ids in one request: its filter has a limit. */
const IDS_PER_REQUEST = 25;
const NOTHING = '–';

/** A row with the columns that were requested. */
type Row = RunRow & { columns?: Record<string, unknown> };

export class GroupValues {
  #values = $state.raw<ReadonlyMap<string, readonly string[]>>(new Map());
  #by = '';
  #requested = new Set<string>();
  #closed = new AbortController();

  constructor(private readonly place: { project: string; entity: string | null }) {}

  close(): void {
    this.#closed.abort();
  }

  /** The values of a run, in the order of the names; undefined until they are known. */
  of(run: string): readonly string[] | undefined {
    return this.#values.get(run);
  }

  /** Load the values of runs that are not known yet. */
  load(ids: readonly string[], by: readonly string[]): void {
    if (by.join() !== this.#by) {
      this.#values = new Map();
      this.#requested.clear();
    }
    this.#by = by.join();
    const unknown = by.length === 0 ? [] : ids.filter((id) => !this.#requested.has(id));
    for (const id of unknown) this.#requested.add(id);
    for (let i = 0; i < unknown.length; i += IDS_PER_REQUEST) void this.#load(unknown.slice(i, i + IDS_PER_REQUEST), by);
  }

  async #load(ids: readonly string[], by: readonly string[]): Promise<void> {
    const asked = this.#by;
    const params = { ...this.place, filter: `id:${ids.join(',')}`, columns: by.filter((name) => name.includes('.')), limit: ids.length };
    try {
      const { runs } = await get<RunPage>('runs', params, this.#closed.signal);
      if (asked !== this.#by) return;
      this.#values = new Map([...this.#values, ...runs.map((run): [string, string[]] => [run.id, by.map((name) => valueOf(run, name))])]);
    } catch (problem) {
      if (!this.#closed.signal.aborted) throw problem;
    }
  }
}

/** The value of a run under a name that the table can group by, as text. */
export function valueOf(run: Row, name: string): string {
  switch (name) {
    case 'state':
    case 'project':
      return run[name];
    case 'group':
    case 'job_type':
    case 'entity':
      return run[name] ?? NOTHING;
    case 'tag':
      return run.tags.join(', ') || NOTHING;
    case 'host':
      return run.hosts.map((host) => host.name).join(', ') || NOTHING;
    case 'user':
    case 'author':
      return run.author?.name ?? NOTHING;
    default: {
      const value = run.columns?.[name];
      return value === null || value === undefined ? NOTHING : typeof value === 'string' ? value : JSON.stringify(value);
    }
  }
}
