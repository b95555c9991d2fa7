// "Tell me when …": one sentence, and the request that writes what it says: a preference, a rule or an automation.

import type { Method } from '../../base/api';
import type { ChosenEvents } from '../../base/wire';

/** What can happen, and of which kinds of places: all runs of the user, the user's own space, teams. */
export const OCCASIONS = [
  ['fails', 'a run fails, crashes or is lost', ['mine', 'team']],
  ['finishes', 'a run finishes', ['mine', 'team']],
  ['metric', 'a metric crosses a value', ['own', 'team']],
  ['finding', 'something is found to be wrong with a run', ['own', 'team']],
  ['alias', 'a version of an artifact gets an alias', ['team']],
  ['spend', 'a part of the plan is used', ['team']],
] as const;
export type Occasion = (typeof OCCASIONS)[number][0];

export const COMPARISONS = ['>', '>=', '<', '<='].map((comparison) => [comparison, comparison] as const);

/** All runs of the user, in any team. */
export const MINE = 'mine';

export interface Wish {
  occasion: Occasion;
  /** `mine`, or the name of a team or of the user. */
  where: string;
  /** Names of projects, separated by commas; empty: all. */
  projects: string;
  metric: string;
  comparison: string;
  value: string;
  severity: string;
  alias: string;
  percent: string;
  mail: boolean;
  /** The user's own channel. */
  ownSlack: boolean;
  /** Ids of channels of the team. */
  slack: string[];
  webhooks: string[];
  apprise: string[];
}

export const newWish = (where: string): Wish => ({
  occasion: 'fails',
  where,
  projects: '',
  metric: '',
  comparison: '>',
  value: '',
  severity: 'warning',
  alias: 'production',
  percent: '85',
  mail: true,
  ownSlack: false,
  slack: [],
  webhooks: [],
  apprise: [],
});

export interface WishRequest {
  method: Method;
  path: string;
  body: Record<string, unknown>;
}

/** Where an occasion can be watched: names, and what they are called. */
export function placesOf(occasion: Occasion, self: { name: string; personal_entities: boolean } | null, teams: readonly (readonly [name: string, text: string])[]): [string, string][] {
  const kinds: readonly string[] = OCCASIONS.find(([kind]) => kind === occasion)![2];
  return [
    ...(self && kinds.includes('mine') ? [[MINE, 'my runs, in any team'] as [string, string]] : []),
    ...(self?.personal_entities && kinds.includes('own') ? [[self.name, 'my own space'] as [string, string]] : []),
    ...(kinds.includes('team') ? teams.map(([name, text]): [string, string] => [name, `all of ${text}`]) : []),
  ];
}

/** The wish as a name: `loss > 5 (digits)`. */
export function wishName(wish: Wish): string {
  const occasion = {
    fails: 'A run fails',
    finishes: 'A run finishes',
    metric: `${wish.metric.trim()} ${wish.comparison} ${wish.value.trim()}`,
    finding: `A finding of level ${wish.severity} or worse`,
    alias: `A version gets the alias ${wish.alias.trim()}`,
    spend: `${wish.percent.trim()} % of the plan is used`,
  }[wish.occasion];
  const projects = wish.occasion === 'spend' ? [] : namesIn(wish.projects);
  return occasion + (projects.length > 0 ? ` (${projects.join(', ')})` : '');
}

const MAX_NAME = 64;

/** `names`: of what is there already; no two have one name. */
function freeName(wish: Wish, names: readonly string[]): string {
  const name = wishName(wish);
  for (let number = 1; ; number += 1) {
    const end = number === 1 ? '' : ` ${number}`;
    const text = name.slice(0, MAX_NAME - end.length) + end;
    if (!names.includes(text)) return text;
  }
}

/**
 * The request that writes what a wish says.
 *
 * `self`: the name of the user. `events`: what the user chose for their own runs until now.
 */
export function requestOf(wish: Wish, self: string, events: ChosenEvents | null, names: readonly string[]): WishRequest {
  if (wish.where === MINE) {
    const event = wish.occasion === 'fails' ? 'crashed' : 'finished';
    return { method: 'PUT', path: 'account/alerts', body: { events: { [event]: { ...events?.[event], email: wish.mail, slack: wish.ownSlack } } } };
  }
  const name = freeName(wish, names);
  const projects = namesIn(wish.projects);
  if (wish.where === self) {
    const condition = wish.occasion === 'metric' ? { kind: 'threshold', metric: wish.metric.trim(), operator: wish.comparison, value: numberOf(wish.value) } : { kind: 'finding', severity: wish.severity };
    return { method: 'POST', path: `entities/${encodeURIComponent(self)}/alert-rules`, body: { rule: { name, condition, tell: ['author'], ...(projects.length > 0 ? { projects } : {}) } } };
  }
  const actions = [
    ...(wish.mail ? [{ kind: 'mail', members: [self] }] : []),
    ...wish.slack.map((id) => ({ kind: 'slack', destination: Number(id) })),
    ...wish.webhooks.map((id) => ({ kind: 'webhook', webhook: Number(id), payload: null })),
    ...wish.apprise.map((id) => ({ kind: 'apprise', destination: Number(id) })),
  ];
  const filter = { projects: wish.occasion === 'spend' ? [] : projects, run_name: '', author: '', tag: '' };
  return { method: 'POST', path: `teams/${encodeURIComponent(wish.where)}/automations`, body: { name, event: eventOf(wish), filter, actions } };
}

function eventOf(wish: Wish): Record<string, unknown> {
  switch (wish.occasion) {
    case 'fails':
      return { kind: 'run.state', states: ['failed', 'crashed', 'lost'] };
    case 'finishes':
      return { kind: 'run.state', states: ['finished'] };
    case 'metric':
      return { kind: 'metric.threshold', metric: wish.metric.trim(), comparison: wish.comparison, value: numberOf(wish.value), statistic: 'last' };
    case 'finding':
      return { kind: 'finding.opened', findings: [], severity: wish.severity };
    case 'alias':
      return { kind: 'artifact.alias', alias: wish.alias.trim() === '' ? '' : `^${wish.alias.trim().replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}$`, collection: '' };
    case 'spend':
      return { kind: 'usage.threshold', percent: numberOf(wish.percent) };
  }
}

const namesIn = (text: string): string[] => [...new Set(text.split(',').map((name) => name.trim()).filter(Boolean))];

/** What is no number stays a text: the server says what is wrong with it. */
function numberOf(text: string): number | string {
  const number = Number(text);
  return text.trim() === '' || !Number.isFinite(number) ? text : number;
}
