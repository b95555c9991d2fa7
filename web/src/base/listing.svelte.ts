// A list of the API, page by page: {"members": […], "total": n, "next": cursor}.

import { get, reasonOf, type Params } from './api';

type Answer = Record<string, unknown> & { total?: number; next?: string | null; may?: string[] };

export class Listing<Item> {
  /** Null: not loaded yet. */
  items = $state.raw<Item[] | null>(null);
  total = $state(0);
  next = $state<string | null>(null);
  /** What the user may do with the list, if the server says so. */
  may = $state.raw<string[]>([]);
  /** The last answer, for what a list has beside its items. */
  answer = $state.raw<Answer>({});
  error = $state('');
  #name: string;
  #identity: ((item: Item) => string | number) | null;
  #asked = 0;
  /** What was loaded last. */
  #lastRequest: { path: string; params: Params } = { path: '', params: {} };

  /**
   * `name`: of the list in the answer. `identity`: of an item, for lists in an order that may change: what moved to a
   * later page is not shown twice.
   */
  constructor(name: string, identity: ((item: Item) => string | number) | null = null) {
    this.#name = name;
    this.#identity = identity;
  }

  /** Load the first page. */
  async load(path: string, params: Params = {}): Promise<void> {
    this.#lastRequest = { path, params };
    await this.#request(path, params, []);
  }

  /** Load the page after those that are there. */
  async more(): Promise<void> {
    const { path, params } = this.#lastRequest;
    await this.#request(path, { ...params, after: this.next }, this.items ?? []);
  }

  async #request(path: string, params: Params, before: Item[]): Promise<void> {
    const asked = ++this.#asked;
    try {
      const answer = await get<Answer>(path, params);
      if (asked !== this.#asked) return; // a newer request was made meanwhile
      const items = this.#joined(before, answer[this.#name] as Item[]);
      this.items = items;
      this.total = answer.total ?? items.length;
      this.next = answer.next ?? null;
      this.may = answer.may ?? [];
      this.answer = answer;
      this.error = '';
    } catch (problem) {
      if (asked === this.#asked) this.error = reasonOf(problem);
    }
  }

  #joined(before: Item[], page: Item[]): Item[] {
    const identity = this.#identity;
    if (identity === null) return [...before, ...page];
    const ids = new Set(before.map(identity));
    return [...before, ...page.filter((item) => !ids.has(identity(item)))];
  }
}
