// The rows of a list of runs, in blocks: those that are in view are requested, and again while they stay in view.

import { asApiError, get, type ApiError, type Params, type RunRow } from '../../../base/api';
import type { RunPage } from '../../../base/wire';

export const BLOCK = 100;
/** Rows that are kept: more than anyone scrolls back at once. */
const KEPT_BLOCKS = 40;
/** A fast scroll passes many blocks: only those where it stays are requested. */
const RESTING_MS = 60;

type Ask = (params: Params, signal: AbortSignal) => Promise<RunPage>;
const askServer: Ask = (params, signal) => get<RunPage>('runs', params, signal);

export class RunRows {
  /** How many runs match; null: not known yet. */
  total = $state<number | null>(null);
  error = $state.raw<ApiError | null>(null);
  /** Another list was asked for, and the rows are still those of the one before. */
  stale = $state(false);
  #blocks = $state.raw<ReadonlyMap<number, readonly RunRow[]>>(new Map());
  #asked = '';
  #params: Params = {};
  #requests = new Map<number, { abort: AbortController; done: Promise<void> }>();
  #first = 0;
  #last = 0;
  #resting: ReturnType<typeof setTimeout> | undefined;
  #ask: Ask;

  constructor(ask: Ask = askServer) {
    this.#ask = ask;
  }

  row(index: number): RunRow | undefined {
    return this.#blocks.get(Math.floor(index / BLOCK))?.[index % BLOCK];
  }

  /** All rows that are there, in their order. */
  get loaded(): RunRow[] {
    return [...this.#blocks.keys()].sort((a, b) => a - b).flatMap((block) => this.#blocks.get(block)!);
  }

  /** Show the list with these parameters. The rows of the one before stay until the first of the new come. */
  async list(params: Params): Promise<void> {
    const asked = JSON.stringify(params);
    if (asked === this.#asked) return;
    this.#asked = asked;
    this.#params = params;
    this.#cancel();
    this.stale = true;
    this.#first = this.#last = 0;
    await this.#load(0);
  }

  /** These rows are in view. */
  show(first: number, last: number): void {
    this.#first = Math.floor(Math.max(0, first) / BLOCK);
    this.#last = Math.floor(Math.max(first, last) / BLOCK);
    clearTimeout(this.#resting);
    if (this.#missing().length > 0) this.#resting = setTimeout(() => void this.#loadMissing(), RESTING_MS);
  }

  /** Request what is in view again, after what is being answered: that may be from before a change. */
  async refresh(): Promise<void> {
    const blocks = [];
    for (let block = this.#first; block <= this.#last; block++) blocks.push(block);
    await Promise.all(
      blocks.map(async (block) => {
        await this.#requests.get(block)?.done;
        await this.#load(block);
      }),
    );
  }

  /** The rows from one index to another, requested if they are not there. */
  async range(first: number, last: number): Promise<RunRow[]> {
    for (let block = Math.floor(first / BLOCK); block <= Math.floor(last / BLOCK); block++) {
      if (!this.#blocks.has(block)) await this.#load(block);
    }
    const rows = [];
    for (let index = first; index <= last; index++) {
      const row = this.row(index);
      if (row) rows.push(row);
    }
    return rows;
  }

  /** Another version of a row that is there: after a change by this page, before the server is asked again. */
  replace(run: RunRow): void {
    const blocks = new Map(this.#blocks);
    for (const [number, rows] of blocks) {
      if (rows.some(({ id, entity }) => id === run.id && entity === run.entity)) {
        blocks.set(number, rows.map((row) => (row.id === run.id && row.entity === run.entity ? run : row)));
      }
    }
    this.#blocks = blocks;
  }

  close(): void {
    this.#cancel();
    clearTimeout(this.#resting);
  }

  #cancel(): void {
    for (const { abort } of this.#requests.values()) abort.abort();
    this.#requests.clear();
  }

  #missing(): number[] {
    const blocks = [];
    for (let block = this.#first; block <= this.#last; block++) {
      if (!this.#blocks.has(block) && (this.total === null || block * BLOCK < this.total)) blocks.push(block);
    }
    return blocks;
  }

  async #loadMissing(): Promise<void> {
    for (const [block, { abort }] of this.#requests) {
      if (block < this.#first || block > this.#last) abort.abort();
    }
    await Promise.all(this.#missing().map((block) => this.#load(block)));
  }

  /** Request a block, unless that is being done. */
  #load(block: number): Promise<void> {
    const before = this.#requests.get(block);
    if (before) return before.done;
    const abort = new AbortController();
    const request = { abort, done: this.#request(block, abort.signal) };
    this.#requests.set(block, request);
    void request.done.then(() => this.#requests.get(block) === request && this.#requests.delete(block));
    return request.done;
  }

  async #request(block: number, signal: AbortSignal): Promise<void> {
    const asked = this.#asked;
    try {
      const page = await this.#ask({ ...this.#params, limit: BLOCK, skip: block * BLOCK || null }, signal);
      if (!signal.aborted && asked === this.#asked) this.#take(block, page);
    } catch (problem) {
      if (!signal.aborted) this.error = asApiError(problem);
    }
  }

  #take(block: number, page: RunPage): void {
    // Of a list that has changed, only what is in view is kept: the others may be in other places by now.
    const changed = this.stale || this.total !== page.total;
    const blocks = new Map([...this.#blocks].filter(([number]) => !this.stale && (!changed || this.#inView(number))));
    blocks.set(block, page.runs);
    for (const number of [...blocks.keys()]) {
      if (blocks.size > KEPT_BLOCKS && !this.#inView(number) && number !== block) blocks.delete(number);
    }
    this.#blocks = blocks;
    this.total = page.total;
    this.stale = false;
    this.error = null;
  }

  #inView = (block: number): boolean => block >= this.#first && block <= this.#last;
}
