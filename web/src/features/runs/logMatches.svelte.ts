// Lines of a run's output that match, which the server searches all of.

import { get, reasonOf, runPath, type Params, type RunKey } from '../../base/api';
import type { ConsoleMatch, ConsoleMatchesAnswer } from '../../base/wire';

const PAUSE_MS = 250;

export class LogMatches {
  /** In order of time, the newest that are loaded; null before the first response. */
  matches = $state.raw<ConsoleMatch[] | null>(null);
  total = $state(0);
  complete = $state(true);
  error = $state('');
  /** There are older ones, which `loadMore` loads. */
  hasMore = $state(false);
  loading = $state(false);
  /** Counts up with each search that has been answered. */
  searches = $state(0);
  #params: Params = {};
  #next: string | null = null;
  #closed = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly key: RunKey) {}

  /** Search for something else, after a pause: a user may be typing. Returns what ends it. */
  search(params: Params): () => void {
    this.#params = params;
    this.loading = true;
    this.#timer = setTimeout(() => void this.load(params), PAUSE_MS);
    return () => {
      clearTimeout(this.#timer);
      this.#closed.abort();
      this.#closed = new AbortController();
    };
  }

  async load(params: Params, after: string | null = null): Promise<void> {
    const { signal } = this.#closed;
    this.#params = params;
    this.loading = true;
    try {
      const answer = await get<ConsoleMatchesAnswer>(runPath(this.key, '/console/matches'), { ...params, after }, signal);
      this.matches = [...[...answer.matches].reverse(), ...(after === null ? [] : (this.matches ?? []))];
      this.total = answer.total;
      this.complete = answer.complete;
      this.#next = answer.next;
      this.hasMore = answer.next !== null;
      this.error = '';
      if (after === null) this.searches += 1;
    } catch (problem) {
      if (signal.aborted) return;
      this.error = reasonOf(problem);
    }
    this.loading = false;
  }

  loadMore(): Promise<void> {
    return this.load(this.#params, this.#next);
  }
}
