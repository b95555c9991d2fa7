// Which charts a run has, in which sections, from its list of series and nothing else.

import type { SeriesInfo } from '../../../base/api';
import { deviceOf, slotsOf } from '../../../chart/palette';
import { seriesId } from '../../../chart/points';
import { groupBy } from '../../../base/groups';

export interface ChartPlan {
  id: string;
  title: string;
  unit: string;
  text: string;
  /** Where its values come from. */
  sources: string[];
  series: PlannedSeries[];
  /** Each line is a device or a host, and they measure the same. */
  ofDevices: boolean;
  /** Globs that ask the API for all of them. */
  patterns: string[];
  /** All values ever were zero, or it is constant by its nature, and it is none of the charts that everybody looks for. */
  quiet: boolean;
  /** Everybody looks for it, even if all of it is zero. */
  important: boolean;
  /** Its lines are counts of faults: of many, their sum tells more than their mean. */
  summed: boolean;
}

export interface PlannedSeries {
  key: string;
  host: string;
  role: string;
  label: string;
  text: string;
  /** The number of the device; null if it is of none, or of one without a number. */
  device: number | null;
  /** Its colour, whatever else is drawn. */
  slot: number;
  mlflow: SeriesInfo['mlflow'];
  /** What values are multiplied with before they are drawn. */
  factor: number;
}

export interface Section {
  title: string;
  charts: ChartPlan[];
}

const MACHINE = ['CPU', 'Memory', 'Disk', 'Network', 'Process'];
const LAST = ['Pressure', 'Other', 'Monitor'];

/** Charts by section: accelerators, the machine, processes, pressure, what the catalogue does not know, the monitor itself. */
export function plan(series: readonly SeriesInfo[], slots: ReadonlyMap<string, number> = slotsOf(series)): Section[] {
  const rated = new Set(series.filter((item) => item.kind === 'rate').map((item) => `${item.chart}\n${item.host}`));
  const charts = new Map<string, SeriesInfo[]>();
  for (const item of series) {
    // What a chart has as speeds it does not also draw as totals.
    if (item.kind === 'counter' && rated.has(`${item.chart}\n${item.host}`)) continue;
    const id = `${item.chart}\n${item.unit}`;
    const members = charts.get(id);
    if (members) members.push(item);
    else charts.set(id, [item]);
  }
  for (const [id, members] of charts) if (repeats(members, charts)) charts.delete(id);
  for (const [id, members] of [...charts]) {
    const parts = apart(members);
    if (parts.length < 2) continue;
    charts.delete(id);
    for (const part of parts) charts.set(`${id}\n${part[0]!.template}`, part);
  }
  const sections = new Map<string, ChartPlan[]>();
  for (const [id, members] of charts) {
    const title = sectionOf(members);
    const plans = sections.get(title);
    const planned = chartPlan(id, members, slots);
    if (plans) plans.push(planned);
    else sections.set(title, [planned]);
  }
  return [...sections]
    .map(([title, plans]) => ({ title, charts: plans.sort(byImportance) }))
    .sort((a, b) => rank(a.title) - rank(b.title) || a.title.localeCompare(b.title));
}

/** A chart per device, of a machine with one device of that kind, says what the chart of all devices says already. */
function repeats(members: readonly SeriesInfo[], charts: ReadonlyMap<string, readonly SeriesInfo[]>): boolean {
  const { chart, unit } = members[0]!;
  const [title, part] = chart.split(' per ');
  if (part === undefined || !charts.has(`${title}\n${unit}`)) return false;
  return new Set(members.map((member) => `${member.template}\n${member.host}`)).size === members.length;
}

/** More lines than this are drawn as one band around their mean, which exists of equal quantities only. */
const MAX_MIXED = 12;

/** The series of a chart, apart by what they measure if they are too many to be a line each. */
function apart(members: readonly SeriesInfo[]): SeriesInfo[][] {
  const parts = [...groupBy(members, ({ template }) => template).values()];
  return members.length > MAX_MIXED && parts.length < members.length ? parts : [[...members]];
}

function rank(title: string): number {
  if (MACHINE.includes(title)) return 100 + MACHINE.indexOf(title);
  if (LAST.includes(title)) return 200 + LAST.indexOf(title);
  return title === 'GPU' ? 0 : 50;
}

/** A chart of the process and of the host is of the host; one that is of several parts of the machine is of none of them. */
function sectionOf(members: readonly SeriesInfo[]): string {
  const subjects = new Set(members.map((member) => member.subject));
  if (members[0]!.chart.startsWith('Pressure')) return 'Pressure';
  if (subjects.size > 1) subjects.delete('Process');
  return [...subjects][0]!;
}

/** What people look at first, first: the whole before its parts, parts before totals and limits. */
function byImportance(a: ChartPlan, b: ChartPlan): number {
  return Number(a.quiet) - Number(b.quiet) || importance(a) - importance(b);
}

const FIRST = [
  'GPU utilization',
  'GPU memory',
  'GPU memory used',
  'GPU power',
  'GPU temperature',
  'CPU',
  'CPU per core',
  'CPU by mode',
  'Memory',
  'Process memory',
  'Disk I/O',
  'Network',
  'Processes',
  'Process I/O',
  'Pressure',
  'Monitor CPU',
];
const LEAST = ['CPU frequency', 'CPU limit', 'GPU video engines', 'GPU power limit', 'Uptime'];
/** What hardly ever changes in a run. */
const CONSTANT = /limits?\b|PCIe (generation|width)|^Uptime$|capacity/;
const FAULTS = /errors|faults|drops|retrans|exceeded|replays|remapped/i;

function importance(chart: ChartPlan): number {
  const index = FIRST.indexOf(chart.title);
  return index < 0 ? FIRST.length + LEAST.indexOf(chart.title) + 1 : index;
}

function chartPlan(id: string, members: SeriesInfo[], slots: ReadonlyMap<string, number>): ChartPlan {
  const hosts = new Set(members.map((member) => member.host));
  const keys = shorten([...new Set(members.map((member) => member.key))]);
  const first = members[0]!;
  const once = new Set<string>();
  const twice = new Set(members.map((member) => `${member.host}\n${member.key}`).filter((id) => once.has(id) || !once.add(id)));
  const series = members
    .map((member) => {
      const short = keys.get(member.key)!;
      const named = hosts.size > 1 ? (keys.size > 1 ? `${member.host} · ${short}` : member.host) : short;
      const label = twice.has(`${member.host}\n${member.key}`) ? `${named} (${member.role})` : named;
      const { key, host, role, text, mlflow } = member;
      return { key, host, role, label, text, device: deviceOf(member), slot: slots.get(seriesId(member)) ?? 0, mlflow, factor: 1 };
    })
    .sort((a, b) => compareNaturally(a.host, b.host) || compareNaturally(a.key, b.key) || compareNaturally(a.role, b.role));
  return {
    id,
    title: id.split('\n').length > 2 ? `${first.chart}: ${lastPart(first.template)}` : first.chart,
    unit: first.unit,
    text: [...new Set(members.map((member) => member.text).filter(Boolean))].join('\n'),
    sources: [...new Set(members.map((member) => member.source).filter(Boolean))],
    series,
    ofDevices: new Set(members.map((member) => member.template)).size === 1 && twice.size === 0,
    patterns: [...new Set(members.map((member) => member.template.replace(/\{\w+\}/g, '*')))],
    quiet: !FIRST.includes(first.chart) && (CONSTANT.test(first.chart) || members.every((member) => member.zero)),
    important: FIRST.includes(first.chart),
    summed: first.unit === '1' && FAULTS.test(first.chart),
  };
}

/** What a template measures, without which device: its last part. */
const lastPart = (template: string): string => template.split('.').filter((part) => !part.startsWith('{')).pop() ?? template;

const compareNaturally = new Intl.Collator('en', { numeric: true }).compare;

/** Keys without the parts that all of them share, as long as something is left of each. A bare number keeps what it counts. */
export function shorten(keys: readonly string[]): Map<string, string> {
  const parts = keys.map((key) => key.split('.'));
  const shortest = Math.min(...parts.map((part) => part.length));
  const shared = (at: (part: string[]) => string | undefined): boolean => new Set(parts.map(at)).size === 1;
  let front = 0;
  let back = 0;
  if (keys.length > 1) {
    while (front < shortest - 1 && shared((part) => part[front])) front++;
    while (back < shortest - 1 - front && shared((part) => part[part.length - 1 - back])) back++;
  }
  return new Map(
    keys.map((key, i) => {
      const rest = parts[i]!.slice(front, parts[i]!.length - back).join('.');
      return [key, /^\d+$/.test(rest) && front > 0 ? `${parts[i]![front - 1]} ${rest}` : rest];
    }),
  );
}

/** The same charts with MLflow's names; in its units where it has a name for all that a chart draws. */
export function inMlflow(sections: readonly Section[]): Section[] {
  return sections.map((section) => ({ ...section, charts: section.charts.map(chartInMlflow) }));
}

function chartInMlflow(chart: ChartPlan): ChartPlan {
  const units = new Set(chart.series.map((item) => item.mlflow?.unit));
  const [unit] = units;
  const sameUnit = units.size === 1 && unit !== undefined;
  const hosts = new Set(chart.series.map((item) => item.host)).size;
  const series = chart.series.map((item) => {
    if (!item.mlflow) return item;
    const label = hosts > 1 ? `${item.host} · ${item.mlflow.name}` : item.mlflow.name;
    return { ...item, label, factor: sameUnit ? item.mlflow.factor : 1 };
  });
  const only = chart.series.length === 1 ? chart.series[0]!.mlflow : null;
  return { ...chart, series, title: only?.name ?? chart.title, unit: sameUnit ? unit : chart.unit };
}

/** The sections with only those charts that have all the words in their title or keys. */
export function search(sections: readonly Section[], words: string): Section[] {
  const terms = words.toLowerCase().split(/\s+/).filter(Boolean);
  if (terms.length === 0) return [...sections];
  return sections
    .map((section) => ({ ...section, charts: section.charts.filter((chart) => hasAll(section, chart, terms)) }))
    .filter((section) => section.charts.length > 0);
}

function hasAll(section: Section, chart: ChartPlan, terms: string[]): boolean {
  const names = chart.series.map((item) => `${item.key} ${item.mlflow?.name ?? ''}`);
  const text = [section.title, chart.title, ...names].join(' ').toLowerCase();
  return terms.every((word) => text.includes(word));
}
