// Where layouts are kept: on a shared server as saved views, each user's own and one published for the project; otherwise in
// the browser.

import { ApiError, get, send } from '../api';
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
  /** Whether the user may save, and publish. */
  maySave: boolean;
  mayPublish: boolean;
}

/** Someone else changed the layout since it was loaded. */
export class Conflict extends Error {}

export interface Shelf {
  load: () => Promise<Shelved>;
  /** Keep a layout in the place of `before`, or beside the others if that is null. */
  save: (layout: Layout, before: Kept | null, published: boolean) => Promise<Kept>;
  remove: (kept: Kept) => Promise<void>;
}

const STORED = 'runvitals.layout.';

/** Layouts in this browser. */
export class BrowserShelf implements Shelf {
  readonly #name: string;

  constructor({ project, entity }: Workspace) {
    this.#name = `${STORED}${entity ?? ''}/${project}`;
  }

  async load(): Promise<Shelved> {
    const text = localStorage.getItem(this.#name);
    return { own: text === null ? null : kept(layoutOfText(text)), published: null, maySave: true, mayPublish: false };
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
  /** null: it is published for the project. */
  owner: unknown;
  revision: number;
  data: unknown;
}

interface Views {
  views: View[];
  may?: string[];
}

const NAME = 'Panels';
const CONFLICT = 409;

const NOT_FOUND = 404;

/** The server is older and has no saved views. */
export const lacksViews = (problem: unknown): boolean => problem instanceof ApiError && problem.status === NOT_FOUND;

/** Layouts on a shared server. */
export class ServerShelf implements Shelf {
  constructor(private readonly workspace: Workspace) {}

  async load(): Promise<Shelved> {
    const { project, entity } = this.workspace;
    const { views, may = [] } = await get<Views>('views', { project, entity, kind: 'workspace' });
    const [own, published] = [views.find(({ owner }) => owner !== null), views.find(({ owner }) => owner === null)];
    const allowed = may.includes('workspace:save');
    return { own: own ? ofView(own) : null, published: published ? ofView(published) : null, maySave: true, mayPublish: allowed };
  }

  async save(layout: Layout, before: Kept | null, published: boolean): Promise<Kept> {
    const data = layoutData(layout);
    try {
      const view =
        before?.id != null
          ? await send<View>('PATCH', `views/${before.id}`, { data, revision: before.revision })
          : await send<View>('POST', 'views', { kind: 'workspace', name: NAME, ...this.workspace, published, data });
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

function ofView({ id, revision, data }: View): Kept {
  try {
    return { id, revision, layout: layoutOf(data) };
  } catch (problem) {
    if (problem instanceof LayoutProblem) throw new LayoutProblem(`The saved layout cannot be read: ${problem.message}`);
    throw problem;
  }
}
