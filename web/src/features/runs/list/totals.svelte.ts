// The totals of a list of runs: how many match, their states, and the numbers of each column over all of them.

import { asApiError, get, type Params } from '../../../base/api';
import type { RunGroup, RunGroups } from '../../../base/wire';

/** Columns in one request, as the server limits it. */
const MAX_COLUMNS = 50;
const REFRESH_MS = 15_000;
/** To compute them over 100,000 runs takes the server some time: requests take at most this share of it. */
const BUSY_SHARE = 1 / 30;

export class ListTotals {
  /** null: not known, or the server is of an earlier version. */
  all = $state.raw<RunGroup | null>(null);
  #tookMs = 0;

  /** How long to wait until they are requested again. */
  restMs = (): number => Math.max(REFRESH_MS, this.#tookMs / BUSY_SHARE);

  /** `matching`: the parameters of the list. Throws what `get` throws. */
  async load(matching: Params, columns: readonly string[], signal: AbortSignal): Promise<void> {
    const began = performance.now();
    try {
      const { groups } = await get<RunGroups>('runs/groups', { ...matching, columns: columns.slice(0, MAX_COLUMNS) }, signal);
      this.all = groups[0] ?? null;
    } catch (problem) {
      if (asApiError(problem).status !== 404) throw problem;
      this.all = null;
    } finally {
      this.#tookMs = performance.now() - began;
    }
  }
}
