// The current view: the address bar as state. Every view has an address, so it can be shared as a link.

import { address, currentPath, pathIn } from './address';
import { isEntityName } from './names';
import { own } from './own';

export type Tab = 'charts' | 'system' | 'overview' | 'logs' | 'files' | 'artifacts' | 'alerts';
const TABS: readonly string[] = ['charts', 'system', 'overview', 'logs', 'files', 'artifacts', 'alerts'] satisfies Tab[];
/** What tabs were called before: links to them still work. */
const RENAMED_TABS: Record<string, Tab> = { logged: 'charts', console: 'logs' };

/** Pages that need no account: they lead to one. */
export const ENTRIES = ['login', 'setup', 'signup', 'invitation', 'verify', 'reset', 'device', 'mute'] as const;
export type Entry = (typeof ENTRIES)[number];
export const SETTINGS_TABS = ['profile', 'preferences', 'emails', 'notifications', 'security', 'keys', 'teams', 'usage', 'account'] as const;
export type SettingsTab = (typeof SETTINGS_TABS)[number];
export const ORGANISATION_TABS = ['members', 'teams', 'roles', 'service-accounts', 'issuers', 'keys', 'buckets', 'sign-in', 'mail', 'slack', 'integrations', 'settings', 'audit'] as const;
export type OrganisationTab = (typeof ORGANISATION_TABS)[number];
export const TEAM_TABS = ['general', 'members', 'privacy', 'roles', 'service-accounts', 'notifications', 'integrations', 'usage', 'storage', 'audit'] as const;
export type TeamTab = (typeof TEAM_TABS)[number];
export const BILLING_TABS = ['plan', 'usage', 'lost-time', 'budget', 'storage', 'alerts', 'prices', 'cost-centres', 'payment', 'administrators', 'statements'] as const;
/** What pages of settings were called before: links to them still work. */
const RENAMED_SETTINGS: Record<string, 'notifications'> = { alerts: 'notifications', rules: 'notifications', automations: 'notifications' };
export type BillingTab = (typeof BILLING_TABS)[number];

export const PROJECT_TABS = ['overview', 'workspace', 'runs', 'reports', 'findings', 'sweeps', 'artifacts', 'settings'] as const;
export type ProjectTab = (typeof PROJECT_TABS)[number];

/** A report: its id, as the end of the address has it. `editing`: its editor. */
export interface ReportRoute {
  page: 'report';
  entity: string;
  project: string;
  id: string;
  editing: boolean;
}

/** A registry of a team, or what is in it; without `registry` the list of them, and without `team` of all teams. */
export interface RegistryRoute {
  page: 'registry';
  team: string | null;
  registry: string | null;
  collection: string | null;
  version: string | null;
  /** The id of a request for a protected alias; empty: the list of them. */
  request: string | null;
  /** Its automations. */
  automations: boolean;
}

/** Pages of a server with accounts. */
export type AccountRoute =
  | { page: 'entry'; entry: Entry }
  | { page: 'project'; entity: string; project: string; tab: ProjectTab }
  | ReportRoute
  | RegistryRoute
  | { page: 'settings'; tab: SettingsTab }
  | { page: 'organisation'; tab: OrganisationTab }
  | { page: 'billing'; tab: BillingTab }
  | { page: 'entity'; name: string }
  | { page: 'team'; team: string; tab: TeamTab };

/** `entity` and `project`: null in an address without them. `shared`: as a guest, by a link. */
export interface RunRoute {
  page: 'run';
  id: string;
  /** null: the first tab of the run, which depends on what it has. */
  tab: Tab | null;
  entity: string | null;
  project: string | null;
  shared: boolean;
}

export type Route =
  | { page: 'home' }
  | { page: 'runs'; project: string | null }
  | { page: 'compare' }
  | { page: 'hosts' }
  | { page: 'host'; name: string }
  | RunRoute
  | { page: 'shared' }
  | { page: 'mlflow' }
  | AccountRoute
  | { page: 'unknown'; path: string };

export function parse(path: string): Route {
  const parts = path.split('/').filter(Boolean).map(decode);
  if (parts.length === 0) return { page: 'home' };
  if (parts[0] === 'runs' && parts.length === 1) return { page: 'runs', project: null };
  if (parts[0] === 'compare' && parts.length === 1) return { page: 'compare' };
  if (parts[0] === 'hosts' && parts.length <= 2) return parts[1] === undefined ? { page: 'hosts' } : { page: 'host', name: parts[1] };
  if (parts[0] === 'projects' && parts.length === 2) return { page: 'runs', project: parts[1]! };
  if (parts.length === 2 && parts[0] === '-' && parts[1] === 'shared') return { page: 'shared' };
  if (parts.length === 4 && parts[0] === '-' && parts[1] === 'embed' && parts[2] === 'reports') return { page: 'shared' };
  if (parts.length === 2 && parts[0] === '-' && parts[1] === 'mlflow') return { page: 'mlflow' };
  return runRoute(parts) ?? accountRoute(parts) ?? { page: 'unknown', path };
}

/** `/runs/RUN`, `/ENTITY/PROJECT/runs/RUN`, or `/-/shared/runs/RUN`, each with a tab or without. */
function runRoute(parts: readonly string[]): RunRoute | null {
  const from = parts[0] === 'runs' ? 0 : 2;
  const [runs, id, named = null, ...more] = parts.slice(from);
  const tab = named !== null && Object.hasOwn(RENAMED_TABS, named) ? RENAMED_TABS[named]! : named;
  if (runs !== 'runs' || !id || more.length > 0 || (tab !== null && !TABS.includes(tab))) return null;
  const run: RunRoute = { page: 'run', id, tab: tab as Tab | null, entity: null, project: null, shared: false };
  if (from === 0) return run;
  const [entity, project] = parts as [string, string];
  if (entity === '-' && project === 'shared') return { ...run, shared: true };
  return isEntityName(entity) ? { ...run, entity, project } : null;
}

function accountRoute(parts: readonly string[]): AccountRoute | null {
  const [first, second, third, fourth] = parts;
  if (first === '-' && parts.length <= 3) {
    const entry = ENTRIES.find((name) => name === second);
    if (entry && third === undefined) return { page: 'entry', entry };
    const settings = SETTINGS_TABS.find((name) => name === settingsName(third ?? 'profile'));
    if (second === 'settings' && settings) return { page: 'settings', tab: settings };
    const organisation = ORGANISATION_TABS.find((name) => name === (third ?? 'members'));
    if (second === 'organisation' && organisation) return { page: 'organisation', tab: organisation };
    if (second === 'registries' && third === undefined) return { ...REGISTRIES, team: null };
    const billing = BILLING_TABS.find((name) => name === (third ?? 'plan'));
    if (second === 'billing' && billing) return { page: 'billing', tab: billing };
    return null;
  }
  if (first === undefined || !isEntityName(first)) return null;
  if (parts.length === 1) return { page: 'entity', name: first };
  const team = TEAM_TABS.find((name) => name === settingsName(fourth ?? 'general'));
  if (second === '-' && third === 'settings' && parts.length <= 4 && team) return { page: 'team', team: first, tab: team };
  if (second === '-' && third === 'registries') return registryRoute(first, parts.slice(3));
  const report = third === 'reports' && fourth !== undefined ? /--([^-]+)$/.exec(fourth)?.[1] : undefined;
  if (second !== '-' && report !== undefined && parts.length <= 5 && (parts[4] ?? 'edit') === 'edit') {
    return { page: 'report', entity: first, project: second!, id: report, editing: parts.length === 5 };
  }
  const tab = PROJECT_TABS.find((name) => name === (third ?? 'overview'));
  if (second !== '-' && parts.length <= 3 && tab) return { page: 'project', entity: first, project: second!, tab };
  return null;
}

const REGISTRIES = { page: 'registry', automations: false, registry: null, collection: null, version: null, request: null } as const;

/** `parts`: after `/TEAM/-/registries`. */
function registryRoute(team: string, parts: readonly string[]): RegistryRoute | null {
  const [registry = null, kind, name, versions, version] = parts;
  const route: RegistryRoute = { ...REGISTRIES, team, registry };
  if (parts.length <= 1) return route;
  if (kind === 'automations' && parts.length === 2) return { ...route, automations: true };
  if (kind === 'requests' && parts.length <= 3) return { ...route, request: name ?? '' };
  if (kind !== 'collections' || name === undefined) return null;
  if (parts.length === 3) return { ...route, collection: name };
  return versions === 'versions' && version !== undefined && parts.length === 5 ? { ...route, collection: name, version } : null;
}

const settingsName = (name: string): string => own(RENAMED_SETTINGS, name) ?? name;

const OF_MLFLOW = /^#\/experiments\/([^/?]+)(?:\/runs\/([^/?]+))?/;

/** The address here of a link that MLflow's clients print, such as `/#/experiments/1/runs/…`; null for others. */
export function mlflowHref(hash: string): string | null {
  const match = OF_MLFLOW.exec(hash);
  if (!match) return null;
  const query = new URLSearchParams({ experiment: decode(match[1]!) });
  if (match[2] !== undefined) query.set('run', decode(match[2]));
  return `/-/mlflow?${query}`;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // a lone % in a typed address
  }
}

/** Where a guest reads what a link leads to. */
export const SHARED = '/-/shared';
/** Begins the addresses of what other sites show in frames. */
const EMBEDDED = '/-/embed/';

/** `entity`: the team or user that has the project, on a server with accounts; names are unique in it only. */
export function projectHref(name: string, entity: string | null = null, tab: ProjectTab = 'overview'): string {
  if (here.guest) return SHARED;
  if (entity === null) return `/projects/${encodeURIComponent(name)}`;
  return `/${encodeURIComponent(entity)}/${encodeURIComponent(name)}${tab === 'overview' ? '' : `/${tab}`}`;
}

export function runHref(run: { id: string; entity: string | null; project: string }, tab: Tab | null = null): string {
  const before = here.guest ? SHARED : run.entity === null ? '' : projectHref(run.project, run.entity);
  return `${before}/runs/${encodeURIComponent(run.id)}${tab === null ? '' : `/${tab}`}`;
}

/** The page of a report, or its editor. */
export function reportHref(report: { entity: string; project: string; slug: string; id: number }, editing = false): string {
  return `${projectHref(report.project, report.entity, 'reports')}/${encodeURIComponent(`${report.slug}--${report.id}`)}${editing ? '/edit' : ''}`;
}

export const hostHref = (name: string): string => `/hosts/${encodeURIComponent(name)}`;

/** Ids are unique in a team only: if all runs are of the same one, the address names it. */
export function compareHref(runs: readonly { id: string; entity: string | null }[]): string {
  const query = new URLSearchParams(runs.map(({ id }) => ['runs', id]));
  const entity = runs[0]?.entity ?? null;
  if (entity !== null && runs.every((run) => run.entity === entity)) query.set('entity', entity);
  return `/compare?${query}`;
}

const ENTRY_TITLES: Record<Entry, string> = {
  login: 'Sign in',
  setup: 'Set up this server',
  signup: 'Sign up',
  invitation: 'Invitation',
  verify: 'Confirm your address',
  reset: 'Reset your password',
  device: 'New key for a machine',
  mute: 'Mute alerts',
};

/** What a page of accounts is called in the browser's tab. */
export function accountTitle(route: AccountRoute): string {
  if (route.page === 'entry') return ENTRY_TITLES[route.entry];
  if (route.page === 'settings') return 'Settings';
  if (route.page === 'organisation') return 'Organisation';
  if (route.page === 'billing') return 'Billing';
  if (route.page === 'project') return `${route.entity}/${route.project}`;
  if (route.page === 'report') return 'Report';
  if (route.page === 'registry') return [route.collection, route.registry, 'Registry'].filter(Boolean).join(' · ');
  return route.page === 'team' ? `${route.team}: settings` : route.name;
}

/** The page of the registries of a team, or of `rest`: names below it, such as a registry, `collections` and one of them. */
export function registryHref(team: string | null, ...rest: (string | number)[]): string {
  return [team === null ? '/-/registries' : `/${encodeURIComponent(team)}/-/registries`, ...rest.map((name) => encodeURIComponent(name))].join('/');
}

export const entityHref = (name: string): string => `/${encodeURIComponent(name)}`;
export const teamSettingsHref = (team: string, tab: TeamTab = 'general'): string => `${entityHref(team)}/-/settings/${tab}`;

/** Paths that are not views of the page. */
const OF_THE_SERVER = /^\/(api\/|auth\/|login$)/;

const tokenInAddress = (): string => decode(window.location.hash.slice(1));

class Location {
  path = $state(currentPath());
  query = $state(new URLSearchParams(window.location.search));
  /** The secret of a link from a mail: after the `#`, so that it is in no log. */
  token = $state(tokenInAddress());
  route = $derived(parse(this.path));
  /** The view is that of a guest: what the link leads to, and nothing of the user who may be signed in. */
  guest = $derived(this.path === SHARED || this.path.startsWith(`${SHARED}/`) || this.path.startsWith(EMBEDDED));
  /** In a frame of another site: the page around it is that site's. */
  embedded = $derived(this.path.startsWith(EMBEDDED));

  constructor() {
    this.#read();
    window.addEventListener('popstate', () => this.#read());
  }

  #read(): void {
    const linked = currentPath() === '/' ? mlflowHref(window.location.hash) : null;
    if (linked !== null) window.history.replaceState(null, '', address(linked));
    this.path = currentPath();
    this.query = new URLSearchParams(window.location.search);
    this.token = tokenInAddress();
  }

  go(href: string): void {
    window.history.pushState(null, '', address(href));
    this.#read();
    window.scrollTo(0, 0);
  }

  /** As `go`, without a step in the history: the current view cannot be shown. */
  replace(href: string): void {
    window.history.replaceState(null, '', address(href));
    this.#read();
  }

  /** Set or drop (null) parameters of this view, without a step in the history. */
  set(changes: Record<string, string | null>): void {
    window.history.replaceState(null, '', address(this.with(changes)));
    this.query = new URLSearchParams(window.location.search);
  }

  /** The same as a step in the history, so that Back undoes it. */
  push(changes: Record<string, string | null>): void {
    const href = this.with(changes);
    if (href === currentPath() + window.location.search) return;
    window.history.pushState(null, '', address(href));
    this.query = new URLSearchParams(window.location.search);
  }

  /** The address of this view with some parameters set, or dropped (null). */
  with(changes: Record<string, string | null>): string {
    return this.path + this.queryWith(changes);
  }

  /** The same without the path: empty, or from the `?` on. */
  queryWith(changes: Record<string, string | null>): string {
    const query = new URLSearchParams(this.query);
    for (const [name, value] of Object.entries(changes)) {
      if (value === null || value === '') query.delete(name);
      else query.set(name, value);
    }
    const text = query.toString();
    return text && `?${text}`;
  }

  /** Follow links to views of this page without reloading it; the browser handles new tabs and other sites. */
  follow = (event: MouseEvent): void => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element | null)?.closest('a');
    if (!link || link.origin !== window.location.origin || link.target) return;
    const path = pathIn(link.pathname);
    if (path === null || OF_THE_SERVER.test(path)) return;
    event.preventDefault();
    this.go(path + link.search);
  };
}

export const here = new Location();
