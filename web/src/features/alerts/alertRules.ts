// Alert rules: their JSON, what they say, and the form that edits them.

import { own } from '../../base/own';
import type { ListedRule } from '../../base/wire';
import type { Level } from './alerts';

export type RuleKind = 'threshold' | 'change' | 'spread' | 'silence' | 'not_finite' | 'finding';

/** As in a file of rules. */
export type RuleDefinition = { name: string; description?: string; severity?: Level; condition: Record<string, unknown> } & Record<string, unknown>;
export type StoredRule = Omit<ListedRule, 'rule'> & { rule: RuleDefinition };

export const KINDS: readonly (readonly [RuleKind, string])[] = [
  ['threshold', 'A value is beyond a limit'],
  ['change', 'A value differs from before'],
  ['spread', 'A series differs from others of the run'],
  ['silence', 'Nothing arrives'],
  ['not_finite', 'A value is not a number'],
  ['finding', 'Something is found to be wrong with a run'],
];
export const STATISTICS = [
  ['last', 'last value'],
  ['mean', 'mean of a window'],
  ['min', 'minimum of a window'],
  ['max', 'maximum of a window'],
] as const;
export const OPERATORS = ['>', '>=', '<', '<='].map((operator) => [operator, operator] as const);
export const DIRECTIONS = [
  ['either', 'up or down'],
  ['up', 'up'],
  ['down', 'down'],
] as const;
export const SILENT = [
  ['metric', 'of a metric'],
  ['host', 'of a host'],
  ['rank', 'of a rank that logs nothing while others do'],
  ['steps', 'of the training: no step is logged'],
] as const;
export const SEVERITIES = ['info', 'warning', 'error'].map((severity) => [severity, severity] as const);
export const FINDING_SEVERITIES = [
  ['warning', 'warning'],
  ['critical', 'critical'],
  ['info', 'info: also what only describes a run'],
] as const;
export const DAYS = [
  ['mon', 'Mon'],
  ['tue', 'Tue'],
  ['wed', 'Wed'],
  ['thu', 'Thu'],
  ['fri', 'Fri'],
  ['sat', 'Sat'],
  ['sun', 'Sun'],
] as const;

/** A time in which a rule notifies nobody, as it was typed: once, or on some days of each week. */
export interface MaintenanceForm {
  weekly: boolean;
  /** Once: times of this machine's zone, as `<input type="datetime-local">` has them. */
  begin: string;
  end: string;
  days: string[];
  from: string;
  to: string;
  zone: string;
}

/** The fields of the form; numbers and durations as they were typed. */
export interface RuleForm {
  name: string;
  description: string;
  severity: string;
  kind: RuleKind;
  metric: string;
  statistic: string;
  window: string;
  operator: string;
  value: string;
  clear: string;
  baseline: string;
  by: string;
  relative: boolean;
  direction: string;
  of: string;
  busy_metric: string;
  busy_value: string;
  /** Ids of findings, separated by commas; empty: any. */
  findings: string;
  finding_severity: string;
  for: string;
  cooldown: string;
  resolve: boolean;
  /** Of all teams: for administrators of the organisation. */
  everywhere: boolean;
  projects: string;
  filter: string;
  hosts: string;
  tell: string[];
  maintenance: MaintenanceForm[];
}

export const EMPTY_RULE: RuleForm = {
  name: '',
  description: '',
  severity: 'warning',
  kind: 'threshold',
  metric: '',
  statistic: 'last',
  window: '',
  operator: '>',
  value: '',
  clear: '',
  baseline: '',
  by: '',
  relative: true,
  direction: 'either',
  of: 'metric',
  busy_metric: '',
  busy_value: '',
  findings: '',
  finding_severity: 'warning',
  for: '',
  cooldown: '',
  resolve: true,
  everywhere: false,
  projects: '',
  filter: '',
  hosts: '',
  tell: [],
  maintenance: [],
};

export const newMaintenance = (zone: string): MaintenanceForm => ({ weekly: true, begin: '', end: '', days: ['sat', 'sun'], from: '00:00', to: '24:00', zone });

export function formOf(rule: RuleDefinition): RuleForm {
  const { condition } = rule;
  const text = (values: Record<string, unknown>, name: string): string => (values[name] === undefined ? '' : String(values[name]));
  const list = (name: string): string[] => (rule[name] as string[] | undefined) ?? [];
  const named = Object.fromEntries(
    ['metric', 'statistic', 'window', 'operator', 'value', 'clear', 'baseline', 'by', 'direction', 'of', 'busy_metric', 'busy_value'].flatMap((name) =>
      condition[name] === undefined ? [] : [[name, durationText(name, condition[name])]],
    ),
  ) as Partial<RuleForm>;
  return {
    ...EMPTY_RULE,
    ...named,
    name: rule.name,
    description: text(rule, 'description'),
    severity: text(rule, 'severity') || EMPTY_RULE.severity,
    kind: condition.kind as RuleKind,
    relative: condition.relative !== false,
    findings: idsOf(condition).join(', '),
    finding_severity: text(condition, 'severity') || EMPTY_RULE.finding_severity,
    for: durationText('for', rule.for),
    cooldown: durationText('cooldown', rule.cooldown),
    resolve: rule.resolve !== false,
    everywhere: rule.everywhere === true,
    projects: list('projects').join(', '),
    filter: text(rule, 'filter'),
    hosts: list('hosts').join(', '),
    tell: [...list('tell')],
    maintenance: ((rule.maintenance as Record<string, unknown>[] | undefined) ?? []).map(maintenanceOf),
  };
}

/** The ids of a condition about findings: a list, or one alone. */
const idsOf = (condition: Record<string, unknown>): string[] => [condition.findings ?? []].flat() as string[];

/** A duration in seconds, or as a text such as 15m, as a text. */
function durationText(name: string, value: unknown): string {
  if (value === undefined) return '';
  return ['for', 'cooldown', 'window', 'baseline'].includes(name) && typeof value === 'number' ? `${value}s` : String(value);
}

/** The rule of the form. What is no number stays a text: the server says what is wrong with it. */
export function definitionOf(form: RuleForm): RuleDefinition {
  const optional = (name: string, text: string): Record<string, string> => (text.trim() === '' ? {} : { [name]: text.trim() });
  const listed = (name: string, text: string): Record<string, string[]> => (listOf(text).length === 0 ? {} : { [name]: listOf(text) });
  return {
    name: form.name.trim(),
    ...optional('description', form.description),
    severity: form.severity as Level,
    ...optional('for', form.for),
    ...optional('cooldown', form.cooldown),
    ...(form.resolve ? {} : { resolve: false }),
    ...(form.everywhere ? { everywhere: true } : {}),
    ...listed('projects', form.projects),
    ...optional('filter', form.filter),
    ...listed('hosts', form.hosts),
    ...(form.tell.length === 0 ? {} : { tell: form.tell }),
    ...(form.maintenance.length === 0 ? {} : { maintenance: form.maintenance.map(windowOf) }),
    condition: conditionOf(form),
  };
}

function conditionOf(form: RuleForm): Record<string, unknown> {
  const { kind, metric, direction } = form;
  const clear = form.clear.trim() === '' ? {} : { clear: numberOf(form.clear) };
  const window = form.window.trim() === '' ? {} : { window: form.window.trim() };
  const by = { by: numberOf(form.by), ...clear, direction };
  if (kind === 'threshold') {
    const { statistic, operator } = form;
    return { kind, metric: metric.trim(), statistic, ...(statistic === 'last' ? {} : window), operator, value: numberOf(form.value), ...clear };
  }
  if (kind === 'change') return { kind, metric: metric.trim(), ...window, baseline: form.baseline.trim(), ...by, relative: form.relative };
  if (kind === 'spread') return { kind, metric: metric.trim(), ...window, ...by };
  if (kind === 'not_finite') return { kind, metric: metric.trim() };
  if (kind === 'finding') return { kind, ...(listOf(form.findings).length === 0 ? {} : { findings: listOf(form.findings) }), severity: form.finding_severity };
  const busy = form.busy_metric.trim() === '' ? {} : { busy_metric: form.busy_metric.trim(), busy_value: numberOf(form.busy_value) };
  return { kind, of: form.of, ...(form.of === 'metric' ? { metric: metric.trim() } : {}), ...busy };
}

function maintenanceOf(window: Record<string, unknown>): MaintenanceForm {
  if (window.days === undefined) return { ...newMaintenance('UTC'), weekly: false, begin: localTime(Number(window.from_ms)), end: localTime(Number(window.to_ms)) };
  const text = (name: string, otherwise: string): string => (window[name] === undefined ? otherwise : String(window[name]));
  return { weekly: true, begin: '', end: '', days: [...(window.days as string[])], from: text('from', '00:00'), to: text('to', '24:00'), zone: text('zone', 'UTC') };
}

function windowOf({ weekly, begin, end, days, from, to, zone }: MaintenanceForm): Record<string, unknown> {
  if (!weekly) return { from_ms: Date.parse(begin), to_ms: Date.parse(end) };
  return { days, from, to, zone: zone.trim() };
}

/** A time as `<input type="datetime-local">` has it. */
function localTime(ms: number): string {
  const offset = new Date(ms).getTimezoneOffset() * 60_000;
  return new Date(ms - offset).toISOString().slice(0, 16);
}

/** When a rule fires, in words. */
export function ruleText(rule: RuleDefinition): string {
  const { condition } = rule;
  const of = (name: string): string => String(condition[name] ?? '');
  const held = rule.for === undefined ? '' : ` for ${durationText('for', rule.for)}`;
  const share = condition.relative === false ? '' : ' %';
  const way = condition.direction === 'up' ? ' up' : condition.direction === 'down' ? ' down' : '';
  if (condition.kind === 'threshold') {
    const statistic = condition.statistic === undefined || condition.statistic === 'last' ? '' : `${of('statistic')} in ${durationText('window', condition.window)} of `;
    return `${statistic}${of('metric')} ${of('operator') || '>'} ${of('value')}${held}`;
  }
  if (condition.kind === 'change') return `${of('metric')} changes${way} by ${of('by')}${share}${held}`;
  if (condition.kind === 'spread') return `${of('metric')} is ${of('by')} %${way} off the median of the run${held}`;
  if (condition.kind === 'not_finite') return `${of('metric')} is not a number`;
  if (condition.kind === 'finding') return `finding ${idsOf(condition).join(' or ') || 'of any kind'}, ${of('severity') || EMPTY_RULE.finding_severity} or worse${held}`;
  const event = condition.of === 'host' ? 'nothing is heard of a host' : condition.of === 'steps' ? 'no step is logged' : condition.of === 'rank' ? 'a rank logs nothing while others do' : `no ${of('metric')} arrives`;
  return `${event}${held}${condition.busy_metric === undefined ? '' : ` while ${of('busy_metric')} > ${of('busy_value')}`}`;
}

const CHANNEL_NAMES: Record<string, string> = { author: 'author', members: 'members', slack: 'Slack', webhook: 'webhook', apprise: 'Apprise' };

/** Whom a rule notifies, by what: `author, Slack`. */
export function tellText(tell: readonly string[]): string {
  if (tell.length === 0) return 'by severity, or who wants findings';
  return [...new Set(tell.map((channel) => own(CHANNEL_NAMES, channel.split(':')[0]!) ?? channel))].join(', ');
}

/** The limits that a chart shows: where it fires, and where it is over. */
export function limitsOf(form: RuleForm): number[] {
  if (form.kind !== 'threshold') return [];
  const limits = [form.value, form.clear].filter((text) => text.trim() !== '').map(Number);
  return [...new Set(limits.filter(Number.isFinite))];
}

export const timesText = (times: number): string => (times === 1 ? 'once' : `${times} times`);

function numberOf(text: string): number | string {
  const number = Number(text);
  return text.trim() === '' || !Number.isFinite(number) ? text : number;
}

const listOf = (text: string): string[] => [
  ...new Set(
    text
      .split(',')
      .map((name) => name.trim())
      .filter(Boolean),
  ),
];
