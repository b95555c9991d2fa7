// Where layouts are kept: on a shared server as saved views, each user's own and one published for the project; otherwise in
// the browser.

import { storageKey } from '../../../base/address';
import { ApiError, get, send } from '../../../base/api';
import { guest } from '../../../base/guest.svelte';
import type { Layout } from './layout';
import { layoutData, layoutOf, layoutOfText, layoutText, LayoutProblem } from './layoutFile';

/** Whose layouts. `entity`: the team or user that has the project; null without accounts. */
export interface Workspace {
  project: string;
  entity: string | null;
}

export interface Kept {
  /** Of the view on the server; null: it is in the browser. */
  id: number | null;
  revision: number;
  layout: Layout;
}

export interface Shelved {
  own: Kept | null;
  published: Kept | null;
  mayPublish: boolean;
}

/** Someone else changed the layout since it was loaded. */
export class Conflict extends Error {}

export interface Shelf {
  readonly keeps: 'server' | 'browser' | 'nothing';
  load: () => Promise<Shelved>;
  /** Keep a layout in the place of `before`, or beside the others if that is null. */
  save: (layout: Layout, before: Kept | null, published: boolean) => Promise<Kept>;
  remove: (kept: Kept) => Promise<void>;
}

const STORED = 'runvitals.layout.';

/** Layouts in this browser. */
export class BrowserShelf implements Shelf {
  readonly keeps = 'browser';
  readonly #name: string;

  constructor({ project, entity }: Workspace) {
    this.#name = storageKey(`${STORED}${entity ?? ''}/${project}`);
  }

  async load(): Promise<Shelved> {
    const text = localStorage.getItem(this.#name);
    return { own: text === null ? null : kept(layoutOfText(text)), published: null, mayPublish: false };
  }

  async save(layout: Layout): Promise<Kept> {
    localStorage.setItem(this.#name, layoutText(layout));
    return kept(layout);
  }

  async remove(): Promise<void> {
    localStorage.removeItem(this.#name);
  }
}

const kept = (layout: Layout): Kept => ({ id: null, revision: 0, layout });

/** A saved view of the API. */
interface View {
  id: number;
  name: string;
  /** null: it is published for the project; without accounts, that of everyone. */
  owner: string | null;
  revision: number;
  data: unknown;
  may: string[];
}

const NAME = 'Panels';
const CONFLICT = 409;

async function viewsOf({ project, entity }: Workspace): Promise<View[]> {
  const { views } = await get<{ views: View[] }>('views', { project, entity, kind: 'workspace' });
  return views.filter(({ name }) => name === NAME);
}

/** Layouts on a shared server. */
export class ServerShelf implements Shelf {
  readonly keeps = 'server';

  /** `accounts`: without them, all who use the server have the same layout. */
  constructor(
    private readonly workspace: Workspace,
    private readonly accounts: boolean,
  ) {}

  async load(): Promise<Shelved> {
    const views = await viewsOf(this.workspace);
    const [mine, published] = [views.find(({ owner }) => owner !== null), views.find(({ owner }) => owner === null)];
    if (!this.accounts) return { own: published ? ofView(published) : null, published: null, mayPublish: false };
    // Without a published layout it is not known who may publish one: the server says so when they try.
    const mayPublish = published === undefined || published.may.includes('workspace:update');
    return { own: mine ? ofView(mine) : null, published: published ? ofView(published) : null, mayPublish };
  }

  async save(layout: Layout, before: Kept | null, published: boolean): Promise<Kept> {
    const data = layoutData(layout);
    try {
      const view =
        before === null
          ? await send<View>('POST', 'views', { kind: 'workspace', name: NAME, ...this.workspace, published, data })
          : await send<View>('PATCH', `views/${before.id}`, { data, revision: before.revision });
      return { id: view.id, revision: view.revision, layout };
    } catch (problem) {
      if (problem instanceof ApiError && problem.status === CONFLICT) throw new Conflict();
      throw problem;
    }
  }

  async remove({ id }: Kept): Promise<void> {
    await send('DELETE', `views/${id}`);
  }
}

/** What guests see: the published layout. What they change is kept nowhere. */
export class GuestShelf implements Shelf {
  readonly keeps = 'nothing';

  constructor(private readonly workspace: Workspace) {}

  async load(): Promise<Shelved> {
    const views = guest.ofRun ? [] : await viewsOf(this.workspace); // those of the project, which a link to a run does not lead to
    const published = views.find(({ owner }) => owner === null);
    return { own: null, published: published ? ofView(published) : null, mayPublish: false };
  }

  async save(layout: Layout): Promise<Kept> {
    return kept(layout);
  }

  async remove(): Promise<void> {
    return undefined;
  }
}

function ofView({ id, revision, data }: View): Kept {
  try {
    return { id, revision, layout: layoutOf(data) };
  } catch (problem) {
    if (problem instanceof LayoutProblem) throw new LayoutProblem(`The saved layout cannot be read: ${problem.message}`);
    throw problem;
  }
}
