// Views that users keep under a name: those of a project on a shared server there, for themselves or for everyone who sees
// the project; others in this browser.

import { storageKey } from '../../../base/address';
import { get, send } from '../../../base/api';
import { changesFor, viewOf, type RunsView, type Scope } from './view';

export interface SavedView {
  id: string;
  name: string;
  /** Whose it is; null: it is for everyone who sees the project. */
  owner: string | null;
  revision: number;
  /** The parameters of the address. */
  query: string;
  /** What the user may do with it. */
  may: string[];
}

interface ServerView {
  id: string | number;
  name: string;
  owner: { name: string | null } | string | null;
  revision: number;
  data: { query?: unknown };
  may: string[];
}

/** What a view keeps: which groups are open is of the moment. */
export const queryOf = (view: RunsView): string => {
  const kept = Object.entries(changesFor({ ...view, open: [] })).filter((entry): entry is [string, string] => entry[1] !== null);
  return new URLSearchParams(kept).toString();
};

export const viewOfQuery = (query: string): RunsView => viewOf(new URLSearchParams(query));

export interface Views {
  /** Views may be made visible to everyone in the project. */
  readonly canPublish: boolean;
  all(): Promise<SavedView[]>;
  create(name: string, query: string, published: boolean): Promise<SavedView>;
  update(view: SavedView, changes: { name?: string; query?: string; published?: boolean }): Promise<SavedView>;
  remove(view: SavedView): Promise<void>;
}

const KIND = 'runs';

export class ServerViews implements Views {
  readonly canPublish = true;
  #scope: Scope;

  constructor(scope: Scope) {
    this.#scope = scope;
  }

  async all(): Promise<SavedView[]> {
    const { views } = await get<{ views: ServerView[] }>('views', { ...this.#scope, kind: KIND });
    return views.map(received);
  }

  async create(name: string, query: string, published: boolean): Promise<SavedView> {
    return received(await send<ServerView>('POST', 'views', { ...this.#scope, kind: KIND, name, published, data: { query } }));
  }

  async update(view: SavedView, { query, ...changes }: { name?: string; query?: string; published?: boolean }): Promise<SavedView> {
    const data = query === undefined ? {} : { data: { query } };
    return received(await send<ServerView>('PATCH', `views/${encodeURIComponent(view.id)}`, { ...changes, ...data, revision: view.revision }));
  }

  async remove(view: SavedView): Promise<void> {
    await send('DELETE', `views/${encodeURIComponent(view.id)}`);
  }
}

const received = ({ id, name, owner, revision, data, may }: ServerView): SavedView => ({
  id: String(id),
  name,
  owner: typeof owner === 'object' ? (owner?.name ?? null) : owner,
  revision,
  query: typeof data.query === 'string' ? data.query : '',
  may,
});

const MAX_VIEWS = 100;

/** Views in the storage of this browser. */
export class BrowserViews implements Views {
  readonly canPublish = false;
  #key: string;
  #storage: Pick<Storage, 'getItem' | 'setItem'>;

  constructor(scope: Scope, storage: Pick<Storage, 'getItem' | 'setItem'> = localStorage) {
    this.#key = storageKey(`runvitals.views.${scope.project ?? ''}`);
    this.#storage = storage;
  }

  async all(): Promise<SavedView[]> {
    try {
      const kept: unknown = JSON.parse(this.#storage.getItem(this.#key) ?? '[]');
      return Array.isArray(kept) ? kept.filter(isKept).map((view) => ({ ...view, owner: '', revision: 1, may: ['update', 'delete'] })) : [];
    } catch {
      return []; // written by something else
    }
  }

  async create(name: string, query: string): Promise<SavedView> {
    const all = await this.all();
    if (all.length >= MAX_VIEWS) throw new Error(`There are ${MAX_VIEWS} saved views already; delete one first.`);
    const view = { id: crypto.randomUUID(), name, owner: '', revision: 1, query, may: ['update', 'delete'] };
    this.#write([...all, view]);
    return view;
  }

  async update(view: SavedView, { name, query }: { name?: string; query?: string }): Promise<SavedView> {
    const changed = { ...view, name: name ?? view.name, query: query ?? view.query };
    this.#write((await this.all()).map((item) => (item.id === view.id ? changed : item)));
    return changed;
  }

  async remove(view: SavedView): Promise<void> {
    this.#write((await this.all()).filter(({ id }) => id !== view.id));
  }

  #write(views: SavedView[]): void {
    this.#storage.setItem(this.#key, JSON.stringify(views.map(({ id, name, query }) => ({ id, name, query }))));
  }
}

const isKept = (value: unknown): value is { id: string; name: string; query: string } =>
  typeof value === 'object' && value !== null && ['id', 'name', 'query'].every((name) => typeof (value as Record<string, unknown>)[name] === 'string');
