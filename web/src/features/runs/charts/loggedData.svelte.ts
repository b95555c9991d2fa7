// The values that a run logged: the list of their names, and the points of the charts in view.

import { asApiError, get, runPath, type LoggedRow, type RunKey } from '../../../base/api';
import { appendRow, fromLogged, loggedUpTo, mergedResumes, processLabel, type LoggedLines } from '../../../chart/loggedPoints';
import { areConstant } from './constants';
import { keyGlob, NAMES_PAGE } from './seriesList';
import type { Logged, Resume } from '../../../base/wire';

export const MAX_POINTS = 1000;
/** Live rows that may be appended to a response before it is requested again. */
const MAX_APPENDED = MAX_POINTS / 3;
/** Until the points of a training that went back to an earlier step are requested again. */
const RESUMED_MS = 3000;
/** Charts with new rows are drawn together, once in this time. */
const DRAWN_MS = 1000;
/** Until what the server could not answer is requested again. */
const RETRY_MS = 3000;
/** Names in one request: its address has a limit. */
const NAMES_PER_REQUEST = 20;

const sorted = (names: Iterable<string>): string[] =>
  [...new Set(names)].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));

export class LoggedData {
  /** null until the first response. */
  names = $state.raw<string[] | null>(null);
  /** Whether `names` has all names of the run; otherwise `loadMore` and `search` add to it. */
  complete = $state(true);
  error = $state('');
  /** Counts up when points change. */
  version = $state(0);
  #lines = new Map<string, LoggedLines>();
  /** The same up to the time of a replay. */
  #cut = new Map<string, LoggedLines>();
  until: number | null = null;
  #resumes: Resume[] = [];
  #charts = new Map<string, number>();
  #requested = new Set<string>();
  /** For each request of points that is under way, the rows that came since it was made: its answer may lack them. */
  #since = new Set<LoggedRow[]>();
  #appended = 0;
  #pages = 1;
  #words = '';
  #timers = new Map<string, ReturnType<typeof setTimeout>>();
  #closed = new AbortController();

  constructor(
    private readonly key: RunKey,
    /** Points are for a logarithmic axis. */
    private log: boolean,
  ) {
    void this.#loadNames();
  }

  close(): void {
    this.#closed.abort();
    for (const timer of this.#timers.values()) clearTimeout(timer);
  }

  /** The points of a name, by process; undefined until they are loaded. */
  lines(name: string): LoggedLines | undefined {
    const lines = this.#lines.get(name);
    if (this.until === null || !lines) return lines;
    const points = this.#cut.get(name);
    if (points) return points;
    const cut = loggedUpTo(lines, this.until);
    this.#cut.set(name, cut);
    return cut;
  }

  /** When the training went on after a restart, as far as the loaded names tell. */
  get resumes(): readonly Resume[] {
    return this.#resumes.filter(({ t }) => this.until === null || t <= this.until);
  }

  /** Whether the loaded points of a name tell nothing: see `areConstant`. */
  isConstant(name: string, running: boolean): boolean {
    const lines = this.#lines.get(name);
    return lines !== undefined && areConstant([...lines.values()].flatMap(({ y, low, high }) => [y, low ?? y, high ?? y]), running) && this.until === null;
  }

  /** The points of all loaded names. */
  loaded(): LoggedLines[] {
    return [...this.#lines.keys()].map((name) => this.lines(name)!);
  }

  /** Show what was logged up to a time; null: everything. */
  setUntil(until: number | null): void {
    if (until === this.until) return;
    this.until = until;
    this.#cut.clear();
    this.version += 1;
  }

  /** Load points for a logarithmic axis, or for another one. */
  setLog(log: boolean): void {
    if (log === this.log) return;
    this.log = log;
    this.#reload();
  }

  /** Keep the points of a name up to date while a chart of it is in view. */
  show(name: string): () => void {
    this.#charts.set(name, (this.#charts.get(name) ?? 0) + 1);
    if (!this.#lines.has(name)) this.#request([name]);
    return () => {
      const left = this.#charts.get(name)! - 1;
      if (left > 0) this.#charts.set(name, left);
      else this.#charts.delete(name);
    };
  }

  /** Take new rows; null means that rows were skipped, and everything is loaded again. */
  take(rows: LoggedRow[] | null): void {
    if (rows === null) {
      this.#reload();
      return;
    }
    for (const since of this.#since) since.push(...rows);
    const names = new Set(this.names ?? []);
    for (const row of rows) {
      for (const [name, value] of Object.entries(row.values)) {
        if (!names.has(name)) {
          if (this.complete) this.#later('names', 1000, () => void this.#loadNames());
          continue;
        }
        const lines = this.#lines.get(name);
        if (!lines) continue;
        const points = lines.get(processLabel(row));
        if (!points) this.#request([name]); // a new process
        else if (!appendRow(points, row, value) && row.step < points.x[points.x.length - 1]!) this.#later('resumed', RESUMED_MS, () => this.#reload());
      }
    }
    this.#appended += rows.length;
    if (this.#appended > MAX_APPENDED) this.#reload();
    else this.#later('drawn', DRAWN_MS, () => (this.version += 1));
  }

  /** Have the server search for names with these words if not all names are loaded. */
  search(words: string): void {
    this.#words = words;
    if (!this.complete && words.trim()) this.#later('search', 300, () => void this.#search());
  }

  async #search(): Promise<void> {
    const keys = keyGlob(this.#words);
    if (keys === null || this.complete) return;
    await this.#try(async () => {
      this.names = sorted([...(this.names ?? []), ...(await this.#namesPage({ keys }))]);
    });
  }

  /** Load the next page of names. */
  async loadMore(): Promise<void> {
    await this.#try(async () => {
      const more = await this.#namesPage({ skip: this.#pages * NAMES_PAGE });
      this.#pages += 1;
      this.complete = more.length < NAMES_PAGE;
      this.names = sorted([...(this.names ?? []), ...more]);
    });
  }

  async #loadNames(): Promise<void> {
    const again = (): void => this.#later('names', RETRY_MS, () => void this.#loadNames());
    await this.#try(async () => {
      const first = await this.#namesPage({});
      if (this.#pages === 1) this.complete = first.length < NAMES_PAGE;
      this.names = sorted([...(this.names ?? []), ...first]);
    }, again);
  }

  #namesPage(params: { keys?: string; skip?: number }): Promise<string[]> {
    return get<string[]>(runPath(this.key, '/history/names'), params, this.#closed.signal);
  }

  #reload(): void {
    for (const name of this.#lines.keys()) if (!this.#charts.has(name)) this.#lines.delete(name);
    this.#appended = 0;
    this.#later('names', 1000, () => void this.#loadNames());
    this.#request(this.#charts.keys());
  }

  #request(names: Iterable<string>): void {
    for (const name of names) this.#requested.add(name);
    if (this.#requested.size > 0) this.#later('points', 20, () => void this.#loadPoints());
  }

  /** One request for the charts that came into view together, or several if they are many. */
  async #loadPoints(): Promise<void> {
    const names = [...this.#requested];
    this.#requested.clear();
    for (let i = 0; i < names.length; i += NAMES_PER_REQUEST) {
      const keys = names.slice(i, i + NAMES_PER_REQUEST);
      const again = (): void => {
        for (const name of keys) this.#requested.add(name);
        this.#later('points', RETRY_MS, () => void this.#loadPoints());
      };
      await this.#try(() => this.#loadLines(keys), again);
    }
  }

  async #loadLines(keys: readonly string[]): Promise<void> {
    const log = this.log;
    const params = { keys: [...keys], max_points: MAX_POINTS, ...(log && { scale: 'log' }) };
    const since: LoggedRow[] = [];
    this.#since.add(since);
    const answer = await get<Logged>(runPath(this.key, '/history'), params, this.#closed.signal).finally(() => this.#since.delete(since));
    if (log !== this.log) return; // it was changed meanwhile, and everything is requested again
    const points = fromLogged(answer);
    this.#resumes = mergedResumes([...this.#resumes, ...answer.resumes]);
    for (const name of keys) {
      const lines = points.get(name) ?? new Map();
      this.#lines.set(name, lines);
      for (const row of since) {
        if (!Object.hasOwn(row.values, name)) continue;
        const line = lines.get(processLabel(row));
        if (line) appendRow(line, row, row.values[name]!);
        else this.#request([name]); // a new process
      }
    }
    this.#cut.clear();
    this.version += 1;
  }

  async #try(work: () => Promise<void>, again?: () => void): Promise<void> {
    try {
      await work();
      this.error = '';
    } catch (problem) {
      if (this.#closed.signal.aborted) return;
      const { message, passing } = asApiError(problem);
      this.error = message;
      if (passing) again?.();
    }
  }

  /** Call `work` once after `ms`, however often it is requested until then. */
  #later(task: string, ms: number, work: () => void): void {
    if (this.#timers.has(task)) return;
    const timer = setTimeout(() => {
      this.#timers.delete(task);
      work();
    }, ms);
    this.#timers.set(task, timer);
  }
}
