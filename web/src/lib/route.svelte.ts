// The current view: the address bar as state. Every view has an address, so it can be shared as a link.

import { isEntityName } from './names';

export type Tab = 'system' | 'logged' | 'overview' | 'console';
const TABS: readonly string[] = ['system', 'logged', 'overview', 'console'] satisfies Tab[];

/** Pages that need no account: they lead to one. */
export const ENTRIES = ['login', 'setup', 'signup', 'invitation', 'verify', 'reset', 'device'] as const;
export type Entry = (typeof ENTRIES)[number];
export const SETTINGS_TABS = ['profile', 'emails', 'security', 'keys', 'teams', 'account'] as const;
export type SettingsTab = (typeof SETTINGS_TABS)[number];
export const ORGANISATION_TABS = ['members', 'teams', 'roles', 'service-accounts', 'keys', 'sign-in', 'settings', 'audit'] as const;
export type OrganisationTab = (typeof ORGANISATION_TABS)[number];
export const TEAM_TABS = ['general', 'members', 'privacy', 'roles', 'service-accounts', 'audit'] as const;
export type TeamTab = (typeof TEAM_TABS)[number];

/** Pages of a server with accounts. */
export type AccountRoute =
  | { page: 'entry'; entry: Entry }
  | { page: 'settings'; tab: SettingsTab }
  | { page: 'organisation'; tab: OrganisationTab }
  | { page: 'entity'; name: string }
  | { page: 'team'; team: string; tab: TeamTab };

export type Route =
  | { page: 'runs'; project: string | null }
  | { page: 'run'; id: string; tab: Tab }
  | AccountRoute
  | { page: 'unknown'; path: string };

export function parse(path: string): Route {
  const parts = path.split('/').filter(Boolean).map(decode);
  if (parts.length === 0) return { page: 'runs', project: null };
  if (parts[0] === 'projects' && parts.length === 2) return { page: 'runs', project: parts[1]! };
  if (parts[0] === 'runs' && parts.length <= 3 && parts[1]) {
    const tab = parts[2] ?? 'system';
    if (TABS.includes(tab)) return { page: 'run', id: parts[1], tab: tab as Tab };
  }
  return accountRoute(parts) ?? { page: 'unknown', path };
}

function accountRoute(parts: readonly string[]): AccountRoute | null {
  const [first, second, third, fourth] = parts;
  if (first === '-' && parts.length <= 3) {
    const entry = ENTRIES.find((name) => name === second);
    if (entry && third === undefined) return { page: 'entry', entry };
    const settings = SETTINGS_TABS.find((name) => name === (third ?? 'profile'));
    if (second === 'settings' && settings) return { page: 'settings', tab: settings };
    const organisation = ORGANISATION_TABS.find((name) => name === (third ?? 'members'));
    if (second === 'organisation' && organisation) return { page: 'organisation', tab: organisation };
    return null;
  }
  if (first === undefined || !isEntityName(first)) return null;
  if (parts.length === 1) return { page: 'entity', name: first };
  const team = TEAM_TABS.find((name) => name === (fourth ?? 'general'));
  if (second === '-' && third === 'settings' && parts.length <= 4 && team) return { page: 'team', team: first, tab: team };
  return null;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // a lone % in a typed address
  }
}

/** `entity`: the team or user that has the project; names are unique in it only. */
export const projectHref = (name: string, entity: string | null = null): string =>
  `/projects/${encodeURIComponent(name)}${entity === null ? '' : `?entity=${encodeURIComponent(entity)}`}`;
export const runHref = (id: string, tab: Tab = 'system'): string =>
  `/runs/${encodeURIComponent(id)}${tab === 'system' ? '' : `/${tab}`}`;

const ENTRY_TITLES: Record<Entry, string> = {
  login: 'Sign in',
  setup: 'Set up this server',
  signup: 'Sign up',
  invitation: 'Invitation',
  verify: 'Confirm your address',
  reset: 'Reset your password',
  device: 'New key for a machine',
};

/** What a page of accounts is called in the browser's tab. */
export function accountTitle(route: AccountRoute): string {
  if (route.page === 'entry') return ENTRY_TITLES[route.entry];
  if (route.page === 'settings') return 'Settings';
  if (route.page === 'organisation') return 'Organisation';
  return route.page === 'team' ? `${route.team}: settings` : route.name;
}

export const entityHref = (name: string): string => `/${encodeURIComponent(name)}`;
export const teamSettingsHref = (team: string, tab: TeamTab = 'general'): string => `${entityHref(team)}/-/settings/${tab}`;

/** Paths that are not views of the page. */
const OF_THE_SERVER = /^\/(api\/|auth\/|login$)/;

const tokenInAddress = (): string => decode(window.location.hash.slice(1));

class Location {
  path = $state(window.location.pathname);
  query = $state(new URLSearchParams(window.location.search));
  /** The secret of a link from a mail: after the `#`, so that it is in no log. */
  token = $state(tokenInAddress());
  route = $derived(parse(this.path));

  constructor() {
    window.addEventListener('popstate', () => this.#read());
  }

  #read(): void {
    this.path = window.location.pathname;
    this.query = new URLSearchParams(window.location.search);
    this.token = tokenInAddress();
  }

  go(href: string): void {
    window.history.pushState(null, '', href);
    this.#read();
    window.scrollTo(0, 0);
  }

  /** As `go`, without a step in the history: the current view cannot be shown. */
  replace(href: string): void {
    window.history.replaceState(null, '', href);
    this.#read();
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
