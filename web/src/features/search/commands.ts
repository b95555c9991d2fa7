// What the command palette offers besides what it finds: pages, settings, actions, and the charts of this page.

import type { Account } from '../../base/api';
import {
  BILLING_TABS,
  entityHref,
  ORGANISATION_TABS,
  PROJECT_TABS,
  projectHref,
  runHref,
  SETTINGS_TABS,
  TEAM_TABS,
  teamSettingsHref,
  type Route,
  type Tab,
} from '../../base/route.svelte';

export interface Command {
  /** Unique among all that the palette shows. */
  id: string;
  title: string;
  /** What is beside the title: a project, a kind. */
  note?: string;
  /** Other words by which it is found. */
  keywords?: string[];
  /** Where it leads; or what it does. */
  href?: string;
  act?: () => void | Promise<void>;
}

export interface CommandGroup {
  title: string;
  commands: Command[];
}

const RUN_TABS: readonly Tab[] = ['charts', 'system', 'overview', 'logs', 'files', 'artifacts', 'alerts'];

/** Other words for settings. */
const KEYWORDS: Record<string, string[]> = {
  keys: ['API keys', 'tokens'],
  security: ['password', 'passkeys', 'second factor', 'sessions'],
  emails: ['mail', 'addresses'],
  notifications: ['alerts', 'rules', 'automations', 'tell me when', 'Slack', 'mail'],
  preferences: ['theme', 'time zone', 'language'],
};

/** `service-accounts` as it is written: `Service accounts`. */
const spoken = (name: string): string => (name.charAt(0).toUpperCase() + name.slice(1)).replaceAll('-', ' ');

/** The views of the run, project or team that the page is about. */
export function viewsHere(route: Route, run: { id: string; entity: string | null; project: string } | null): Command[] {
  if (route.page === 'run' && run !== null) {
    const views = RUN_TABS.map((tab) => ({ id: `view ${tab}`, title: spoken(tab), note: 'this run', href: runHref(run, tab) }));
    return [...views, { id: 'view project', title: run.project, note: 'its project', href: projectHref(run.project, run.entity) }];
  }
  if (route.page === 'project') {
    return PROJECT_TABS.map((tab) => ({
      id: `view ${tab}`,
      title: tab === 'findings' ? 'Lost time' : spoken(tab),
      note: route.project,
      href: projectHref(route.project, route.entity, tab),
    }));
  }
  return [];
}

/** Pages and settings that the user may open. */
export function pagesOf(account: Account | null): Command[] {
  const pages: Command[] = [
    { id: 'page home', title: 'Home', href: '/', keywords: ['start'] },
    { id: 'page runs', title: 'All runs', href: '/runs', keywords: ['table', 'list'] },
    { id: 'page running', title: 'Running runs', href: '/runs?state=running', keywords: ['live', 'now'] },
    { id: 'page failed', title: 'Failed and crashed runs', href: '/runs?q=state:failed,crashed', keywords: ['errors'] },
    { id: 'page hosts', title: 'Hosts', href: '/hosts', keywords: ['machines', 'GPUs', 'devices', 'fleet'] },
  ];
  if (account === null) return pages;
  const settings = SETTINGS_TABS.map((tab) => ({ id: `settings ${tab}`, title: spoken(tab), note: 'your settings', href: `/-/settings/${tab}`, keywords: ['settings', 'account', ...(KEYWORDS[tab] ?? [])] }));
  const teams = account.teams.flatMap(({ name, display_name }) => [
    { id: `team ${name}`, title: display_name, note: 'team', href: entityHref(name), keywords: [name, 'team'] },
    ...TEAM_TABS.map((tab) => ({ id: `team ${name} ${tab}`, title: spoken(tab), note: `settings of ${display_name}`, href: teamSettingsHref(name, tab), keywords: ['team', name, ...(KEYWORDS[tab] ?? [])] })),
  ]);
  const organisation = ORGANISATION_TABS.map((tab) => ({ id: `organisation ${tab}`, title: spoken(tab), note: 'organisation', href: `/-/organisation/${tab}`, keywords: ['organisation', 'administration'] }));
  const billing = BILLING_TABS.map((tab) => ({ id: `billing ${tab}`, title: spoken(tab), note: 'billing', href: `/-/billing/${tab}`, keywords: ['billing', 'cost'] }));
  return [
    ...pages,
    { id: 'page profile', title: 'Your profile', href: entityHref(account.name) },
    ...settings,
    ...teams,
    ...(account.org_role === 'admin' ? organisation : []),
    ...(account.may.includes('billing:read') ? billing : []),
  ];
}

/** The charts that the page shows, to go to. */
export function chartsOn(page: ParentNode): Command[] {
  return [...page.querySelectorAll<HTMLElement>('figure[data-chart]')].map((figure, number) => ({
    id: `chart ${number}`,
    title: figure.getAttribute('aria-label') ?? '',
    note: 'chart',
    act: () => {
      figure.scrollIntoView({ block: 'center' });
      figure.querySelector<HTMLElement>('.plot')?.focus({ preventScroll: true });
    },
  }));
}

/** Those with every word in title, note or keywords: titles that begin so first; at most `limit`. */
export function matchingCommands(commands: readonly Command[], text: string, limit: number): Command[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const matching = commands.filter(({ title, note = '', keywords = [] }) => {
    const all = [title, note, ...keywords].join('\n').toLowerCase();
    return words.every((word) => all.includes(word));
  });
  const [first = ''] = words;
  const rank = ({ title }: Command): number => {
    const index = title.toLowerCase().indexOf(first);
    return index === 0 ? 0 : index > 0 && title[index - 1] === ' ' ? 1 : 2;
  };
  return matching.sort((command, other) => rank(command) - rank(other)).slice(0, limit);
}
