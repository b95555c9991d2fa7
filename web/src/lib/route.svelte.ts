// The current view: the address bar as state. Every view has an address, so it can be shared as a link.

export type Tab = 'system' | 'logged' | 'overview' | 'console';
const TABS: readonly string[] = ['system', 'logged', 'overview', 'console'] satisfies Tab[];

export type Route =
  | { page: 'runs'; project: string | null }
  | { page: 'run'; id: string; tab: Tab }
  | { page: 'unknown'; path: string };

export function parse(path: string): Route {
  const parts = path.split('/').filter(Boolean).map(decode);
  if (parts.length === 0) return { page: 'runs', project: null };
  if (parts[0] === 'projects' && parts.length === 2) return { page: 'runs', project: parts[1]! };
  if (parts[0] === 'runs' && parts.length <= 3 && parts[1]) {
    const tab = parts[2] ?? 'system';
    if (TABS.includes(tab)) return { page: 'run', id: parts[1], tab: tab as Tab };
  }
  return { page: 'unknown', path };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // a lone % in a typed address
  }
}

export const projectHref = (name: string): string => `/projects/${encodeURIComponent(name)}`;
export const runHref = (id: string, tab: Tab = 'system'): string =>
  `/runs/${encodeURIComponent(id)}${tab === 'system' ? '' : `/${tab}`}`;

/** Paths that are not views of the page. */
const OF_THE_SERVER = /^\/(api\/|login$)/;

class Location {
  path = $state(window.location.pathname);
  query = $state(new URLSearchParams(window.location.search));
  route = $derived(parse(this.path));

  constructor() {
    window.addEventListener('popstate', () => this.#read());
  }

  #read(): void {
    this.path = window.location.pathname;
    this.query = new URLSearchParams(window.location.search);
  }

  go(href: string): void {
    window.history.pushState(null, '', href);
    this.#read();
    window.scrollTo(0, 0);
  }

  /** Set or drop (null) parameters of this view, without a step in the history. */
  set(changes: Record<string, string | null>): void {
    window.history.replaceState(null, '', this.with(changes));
    this.query = new URLSearchParams(window.location.search);
  }

  /** The address of this view with some parameters set, or dropped (null). */
  with(changes: Record<string, string | null>): string {
    const query = new URLSearchParams(this.query);
    for (const [name, value] of Object.entries(changes)) {
      if (value === null || value === '') query.delete(name);
      else query.set(name, value);
    }
    const text = query.toString();
    return this.path + (text && `?${text}`);
  }

  /** Follow links to views of this page without reloading it; the browser handles new tabs and other sites. */
  follow = (event: MouseEvent): void => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element | null)?.closest('a');
    if (!link || link.origin !== window.location.origin || link.target || OF_THE_SERVER.test(link.pathname)) return;
    event.preventDefault();
    this.go(link.pathname + link.search);
  };
}

export const here = new Location();
