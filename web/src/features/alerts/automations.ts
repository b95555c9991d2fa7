// Automations of teams: their JSON, what they are called, and the form that edits them.

import type * as wire from '../../base/wire';

export type RunState = 'running' | 'finished' | 'failed' | 'crashed' | 'stopped' | 'lost';
export const STATES: readonly RunState[] = ['running', 'finished', 'failed', 'crashed', 'stopped', 'lost'];

export const EVENTS = [
  ['run.state', 'A run reaches a state'],
  ['run.tag', 'A run gets a tag'],
  ['metric.threshold', 'A metric crosses a value'],
  ['metric.change', 'A metric changes'],
  ['metric.z_score', 'A metric is unusual'],
  ['artifact.version', 'A version of an artifact is logged'],
  ['artifact.alias', 'A version gets an alias'],
  ['registry.link', 'A version is linked to a registry'],
  ['registry.request', 'A protected alias is requested'],
  ['finding.opened', 'Something is found to be wrong with a run'],
  ['finding.closed', 'What was wrong with a run is over'],
  ['finding', 'A rule fires'],
  ['device.silent', 'A device or host falls silent'],
  ['report.published', 'A report is published'],
  ['report.commented', 'A report gets a comment'],
  ['usage.threshold', 'The team has used a part of its plan'],
] as const;
/** Those that the organisation has, which owns registries only. */
export const REGISTRY_EVENTS = EVENTS.filter(([kind]) => kind.startsWith('registry.') || kind === 'artifact.alias');
export type EventKind = (typeof EVENTS)[number][0];

export const COMPARISONS = ['>', '>=', '<', '<=', '=', '!='].map((comparison) => [comparison, comparison] as const);
export const STATISTICS = [
  ['last', 'last value'],
  ['min', 'minimum'],
  ['mean', 'mean'],
  ['max', 'maximum'],
] as const;
export const DIRECTIONS = [
  ['either', 'up or down'],
  ['up', 'up'],
  ['down', 'down'],
] as const;

type Event = { kind: string } & Record<string, unknown>;
export type Action = { kind: string } & Record<string, unknown>;
export type Automation = Omit<wire.Automation, 'event' | 'actions' | 'damaged'> & { event: Event; actions: Action[] };

/** The fields of the form; numbers as they were typed. */
export interface Form {
  name: string;
  kind: EventKind;
  states: RunState[];
  tag: string;
  metric: string;
  comparison: string;
  statistic: string;
  value: string;
  window: string;
  before: string;
  amount: string;
  relative: boolean;
  direction: string;
  collection: string;
  type: string;
  alias: string;
  rule: string;
  host: string;
  /** Of a report. */
  title: string;
  percent: string;
  /** Ids of findings, separated by commas; empty: any. */
  findings: string;
  severity: string;
  projects: string;
  run_name: string;
  author: string;
  run_tag: string;
  slack: string[];
  webhooks: string[];
  payload: string;
  apprise: string[];
  members: string[];
  stop: boolean;
  command: string;
  add_tag: string;
  cooldown_h: string;
}

export const EMPTY: Form = {
  name: '',
  kind: 'run.state',
  states: ['failed', 'crashed'],
  tag: '',
  metric: '',
  comparison: '>',
  statistic: 'last',
  value: '',
  window: '',
  before: '50',
  amount: '0.2',
  relative: true,
  direction: 'either',
  collection: '',
  type: '',
  alias: '',
  rule: '',
  host: '',
  title: '',
  percent: '85',
  findings: '',
  severity: 'warning',
  projects: '',
  run_name: '',
  author: '',
  run_tag: '',
  slack: [],
  webhooks: [],
  payload: '',
  apprise: [],
  members: [],
  stop: false,
  command: '',
  add_tag: '',
  cooldown_h: '24',
};

export function formOf(automation: Automation): Form {
  const { event, filter, actions } = automation;
  const text = (name: string): string => (event[name] === undefined ? '' : String(event[name]));
  const of = (kind: string): Action[] => actions.filter((action) => action.kind === kind);
  return {
    ...EMPTY,
    name: automation.name,
    kind: event.kind as EventKind,
    states: (event.states as RunState[] | undefined) ?? [],
    tag: text('tag'),
    metric: text('metric'),
    comparison: text('comparison') || EMPTY.comparison,
    statistic: text('statistic') || EMPTY.statistic,
    value: text('value'),
    window: text('window'),
    before: text('before') || EMPTY.before,
    amount: text('amount') || EMPTY.amount,
    relative: event.relative !== false,
    direction: text('direction') || EMPTY.direction,
    collection: text('collection'),
    type: text('type'),
    alias: text('alias'),
    rule: text('name'),
    host: text('host'),
    title: text('title'),
    percent: text('percent') || EMPTY.percent,
    findings: ((event.findings as string[] | undefined) ?? []).join(', '),
    severity: text('severity') || EMPTY.severity,
    projects: filter.projects.join(', '),
    run_name: filter.run_name,
    author: filter.author,
    run_tag: filter.tag,
    slack: of('slack').map((action) => String(action.destination)),
    webhooks: of('webhook').map((action) => String(action.webhook)),
    payload: String(of('webhook').find((action) => action.payload)?.payload ?? ''),
    apprise: of('apprise').map((action) => String(action.destination)),
    members: of('mail').flatMap((action) => action.members as string[]),
    stop: of('stop').length > 0,
    command: String(of('command')[0]?.command ?? ''),
    add_tag: String(of('tag')[0]?.tag ?? ''),
    cooldown_h: String(automation.cooldown_h),
  };
}

/**
 * The body of a request. What is no number stays a text: the server says what is wrong with it.
 * `edited`: the automation that is changed.
 */
export function bodyOf(form: Form, edited: Automation | null = null): Record<string, unknown> {
  const actions: Action[] = [
    ...form.slack.map((id) => ({ kind: 'slack', destination: Number(id) })),
    ...form.webhooks.map((id) => ({ kind: 'webhook', webhook: Number(id), payload: payloadOf(id, form, edited) })),
    ...form.apprise.map((id) => ({ kind: 'apprise', destination: Number(id) })),
    ...(form.members.length > 0 ? [{ kind: 'mail', members: form.members }] : []),
    ...(isOfRuns(form.kind) && form.stop ? [{ kind: 'stop' }] : []),
    ...(isOfRuns(form.kind) && form.command.trim() !== '' ? [{ kind: 'command', command: form.command.trim() }] : []),
    ...(isOfRuns(form.kind) && form.add_tag.trim() !== '' ? [{ kind: 'tag', tag: form.add_tag.trim() }] : []),
  ];
  return {
    name: form.name.trim(),
    event: eventOf(form),
    filter: hasFilter(form.kind)
      ? {
          projects: listOf(form.projects),
          run_name: isOfReports(form.kind) ? '' : form.run_name,
          author: form.author.trim(),
          tag: isOfReports(form.kind) ? '' : form.run_tag.trim(),
        }
      : { projects: [], run_name: '', author: '', tag: '' },
    actions,
    cooldown_h: numberOf(form.cooldown_h),
  };
}

/** The payload for a webhook. Webhooks may have different ones; those stay until someone changes the one that the form shows. */
function payloadOf(id: string, form: Form, edited: Automation | null): string | null {
  const before = edited?.actions.find((action) => action.kind === 'webhook' && String(action.webhook) === id);
  if (edited && before && formOf(edited).payload === form.payload) return (before.payload as string | null | undefined) ?? null;
  return form.payload.trim() === '' ? null : form.payload;
}

/** Only these can stop or tag a run. */
export const isOfRuns = (kind: string): boolean => kind.startsWith('run.') || kind.startsWith('metric.') || kind.startsWith('finding') || kind === 'device.silent';

/** Reports have no run. */
export const isOfReports = (kind: string): boolean => kind.startsWith('report.');

/** The usage of a team belongs to no run. */
export const hasFilter = (kind: string): boolean => kind !== 'usage.threshold';

/** An event in words. */
export function eventText(event: Event): string {
  const metric = String(event.metric);
  if (event.kind === 'run.state') return `A run is ${(event.states as string[]).join(' or ')}`;
  if (event.kind === 'run.tag') return event.tag ? `A run gets a tag like ${String(event.tag)}` : 'A run gets any tag';
  if (event.kind === 'metric.threshold') {
    const of = event.statistic === 'last' ? metric : `${String(event.statistic)} of the last ${String(event.window)} of ${metric}`;
    return `${of} ${String(event.comparison)} ${String(event.value)}`;
  }
  if (event.kind === 'metric.change') return `${metric} changes by ${event.relative ? `${Number((Number(event.amount) * 100).toPrecision(6))} %` : String(event.amount)}`;
  if (event.kind === 'metric.z_score') return `${metric} is ${String(event.value)} standard deviations off`;
  const collection = event.collection ? ` of ${String(event.collection)}` : '';
  if (event.kind === 'artifact.version') return `A version${collection} is logged`;
  if (event.kind === 'artifact.alias') return `A version${collection} gets an alias like ${String(event.alias)}`;
  if (event.kind === 'finding') return event.name ? `A rule like ${String(event.name)} fires` : 'A rule fires';
  if (event.kind === 'finding.opened' || event.kind === 'finding.closed') {
    const ids = (event.findings as string[] | undefined) ?? [];
    return `Finding ${ids.length === 0 ? 'of any kind' : ids.join(' or ')}, ${String(event.severity)} or worse, ${event.kind === 'finding.opened' ? 'opens' : 'closes'}`;
  }
  if (event.kind === 'device.silent') return `Nothing arrives of a device or host${event.host ? ` like ${String(event.host)}` : ''}`;
  const titled = event.title ? ` with a title like ${String(event.title)}` : '';
  if (event.kind === 'report.published') return `A report${titled} is published`;
  if (event.kind === 'report.commented') return `A report${titled} gets a comment`;
  if (event.kind === 'usage.threshold') return `The team has used ${String(event.percent)} % of its plan`;
  if (event.kind === 'registry.request') return event.alias ? `The alias ${String(event.alias)} is requested` : 'A protected alias is requested';
  if (event.kind === 'registry.link') return event.collection ? `A version is linked to ${String(event.collection)}` : 'A version is linked';
  return event.kind;
}

/** What is done, in words. */
export function actionsText(actions: readonly Action[]): string {
  const texts: Record<string, string> = { slack: 'Slack', webhook: 'webhook', mail: 'mail', stop: 'stop the run', tag: 'add a tag', command: 'run a command', apprise: 'Apprise' };
  return [...new Set(actions.map((action) => texts[action.kind] ?? action.kind))].join(', ');
}

function eventOf(form: Form): Event {
  const { kind, metric, direction } = form;
  const window = form.window.trim() === '' ? {} : { window: numberOf(form.window) };
  if (kind === 'run.state') return { kind, states: form.states };
  if (kind === 'run.tag') return { kind, tag: form.tag };
  if (kind === 'metric.threshold') return { kind, metric, value: numberOf(form.value), comparison: form.comparison, statistic: form.statistic, ...window };
  if (kind === 'metric.change') {
    return { kind, metric, amount: numberOf(form.amount), relative: form.relative, direction, before: numberOf(form.before), ...window };
  }
  if (kind === 'metric.z_score') return { kind, metric, value: numberOf(form.value), direction, ...window };
  if (kind === 'artifact.alias' || kind === 'registry.request') return { kind, alias: form.alias, collection: form.collection };
  if (kind === 'artifact.version') return { kind, collection: form.collection, type: form.type };
  if (kind === 'finding') return { kind, name: form.rule };
  if (kind === 'finding.opened' || kind === 'finding.closed') return { kind, findings: listOf(form.findings), severity: form.severity };
  if (kind === 'device.silent') return { kind, host: form.host };
  if (isOfReports(kind)) return { kind, title: form.title };
  if (kind === 'usage.threshold') return { kind, percent: numberOf(form.percent) };
  return kind.startsWith('artifact.') || kind.startsWith('registry.') ? { kind, collection: form.collection } : { kind };
}

function numberOf(text: string): number | string {
  const number = Number(text);
  return text.trim() === '' || !Number.isFinite(number) ? text : number;
}

/** What is between commas, each once. */
export const listOf = (text: string): string[] => [
  ...new Set(
    text
      .split(',')
      .map((name) => name.trim())
      .filter(Boolean),
  ),
];
