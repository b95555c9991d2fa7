// The columns of the runs table: those that every run has, and any field of its configuration, summary and statistics.

import type { RunRow } from '../../../base/api';
import { lostText, verdictOf } from '../../findings/runVerdict';
import { authorText } from '../runText';
import { durationOf, hostText, latest } from '../runTable';
import { formatAgo, formatDuration } from '../../../base/time';
import { formatValue } from '../../../base/units';
import { statistic } from './systemStatistics';
import { NEWEST, SPARKLINE, TOTALS, type SortTerm, type Total } from './view';
import { groupBy } from '../../../base/groups';
import type { ColumnSummary, GoalMetric, Json, UsualColumns } from '../../../base/wire';

export interface Column {
  name: string;
  title: string;
  /** The API's name to sort by; null: it cannot be sorted. */
  sort: string | null;
  /** Times and numbers are sorted descending at first. */
  descendingFirst: boolean;
  /** The name to group by; null: it cannot be grouped. */
  group: string | null;
  width: number;
  number: boolean;
  hint: string;
}

type Fixed = [name: string, title: string, sort: string | null, group: string | null, width: number, kind: 'text' | 'number', hint: string];

const FIXED: readonly Fixed[] = [
  ['name', 'Run', 'name', 'name', 280, 'text', 'The name of the run'],
  ['state', 'State', 'state', 'state', 110, 'text', 'How the run is doing, or how it ended'],
  ['verdict', 'Verdict', 'verdict', null, 170, 'text', 'What is wrong with the run, if anything'],
  ['lost_hours', 'Lost', 'lost_hours', null, 84, 'number', 'Device-hours that were lost'],
  ['tags', 'Tags', null, 'tag', 160, 'text', 'Tags of the run'],
  ['notes', 'Notes', null, null, 220, 'text', 'The first line of the notes'],
  ['user', 'Author', 'author', 'user', 150, 'text', 'Who started the run'],
  ['project', 'Project', 'project', 'project', 150, 'text', 'The project of the run'],
  ['started', 'Started', 'started_ms', null, 110, 'number', 'When the run started'],
  ['duration', 'Duration', 'duration_ms', null, 116, 'number', 'How long the run took, or has taken by now'],
  ['host', 'Host', null, 'host', 130, 'text', 'Where the run runs or ran'],
  ['group', 'Group', 'group', 'group', 130, 'text', 'The group that the run was given'],
  ['job_type', 'Job type', 'job_type', 'job_type', 110, 'text', 'The job type that the run was given'],
  ['id', 'Id', 'id', null, 160, 'text', 'The id of the run'],
  ['ending', 'Ending', null, null, 160, 'text', 'Exit code or signal'],
  ['cpu', 'CPU', null, null, 84, 'number', 'Mean of the hosts: the newest value, or of a run that has ended the mean over the run'],
  ['memory', 'Memory', null, null, 84, 'number', 'Mean of the hosts: the newest value, or of a run that has ended the mean over the run'],
  ['gpu', 'GPU', null, null, 84, 'number', 'Mean of the GPUs: the newest value, or of a run that has ended the mean over the run'],
];

const BUILT_IN = new Map(FIXED.map(([name, title, sort, group, width, kind, hint]): [string, Column] => [
  name,
  { name, title, sort, descendingFirst: kind === 'number' || name === 'verdict', group, width, number: kind === 'number', hint },
]));

export const BUILT_IN_COLUMNS: readonly Column[] = [...BUILT_IN.values()];

const SECTIONS: readonly [prefix: string, hint: string][] = [
  ['config.', 'Configuration'],
  ['summary.', 'Summary'],
  ['system.', 'System statistic over the whole run'],
  [SPARKLINE, 'Course over the run'],
];

/** A column by its name; null for a name that no column can have. */
export function columnOf(name: string): Column | null {
  const fixed = BUILT_IN.get(name);
  if (fixed) return fixed;
  const section = SECTIONS.find(([prefix]) => name.startsWith(prefix) && name.length > prefix.length);
  if (!section) return null;
  const [prefix, hint] = section;
  const title = name.slice(prefix.length);
  const systemStatistic = statistic(name);
  if (prefix === 'system.' && !systemStatistic) return null;
  const line = prefix === SPARKLINE;
  return {
    name,
    title,
    // The server separates the names of an order by commas.
    sort: line || title.includes(',') ? null : name,
    descendingFirst: prefix !== 'config.',
    group: prefix === 'config.' ? name : null,
    width: Math.min(220, Math.max(line ? 140 : 100, 40 + 7 * title.length)),
    number: prefix !== 'config.' && !line,
    hint: systemStatistic ? `${systemStatistic.text}, ${systemStatistic.unit}` : `${hint}: ${title}`,
  };
}

/**
 * The columns of a view, without those that do not exist and what is there twice. The name comes first. Of columns with
 * the same title each says what it is: `lr` of the configuration and `lr` that was logged.
 */
export function columnsOf(names: readonly string[]): Column[] {
  const others = [...new Set(names)].filter((name) => name !== 'name');
  const columns = ['name', ...others].map(columnOf).filter((column) => column !== null);
  const titles = groupBy(columns, ({ title }) => title);
  return columns.map((column) => (titles.get(column.title)!.length > 1 ? { ...column, title: `${column.title} (${kindOf(column.name)})`, width: Math.min(240, column.width + 50) } : column));
}

/** What a column is, where another one has its title. */
const kindOf = (name: string): string => KINDS.find(([prefix]) => name.startsWith(prefix))?.[1] ?? 'run';
const KINDS: readonly [prefix: string, text: string][] = [
  ['config.', 'config'],
  ['summary.', 'result'],
  ['system.', 'system'],
  [SPARKLINE, 'course'],
];

const [FIRST, LAST] = [
  ['state', 'verdict'],
  ['duration', 'tags', 'user', 'project', 'started', 'host', 'gpu', 'cpu', 'memory'],
];

/** What the usual columns depend on: columns in which no run has anything are left out. */
export interface Shown {
  withProject: boolean;
  runs: readonly RunRow[];
  /** What the server says suits them; null: not known, or the runs are of several projects. */
  usual: UsualColumns | null;
}

const goalColumn = (goal: GoalMetric): string => `summary.${goal.name}`;

/** The best runs first, if there is something to judge them by. */
export function usualSort({ usual }: Shown): readonly SortTerm[] {
  const goal = usual?.goal;
  if (!goal?.goal || goal.name.includes(',')) return NEWEST;
  return [{ name: goalColumn(goal), descending: goal.goal === 'maximize' }];
}

export function usualColumns({ withProject, runs, usual }: Shown): string[] {
  const empty: Record<string, boolean> = {
    verdict: runs.every((run) => verdictOf(run) === null),
    tags: runs.every((run) => run.tags.length === 0),
    user: runs.every((run) => authorText(run) === ''),
    project: !withProject,
    gpu: runs.every((run) => latest(run).gpus === 0),
  };
  const goal = usual?.goal ? [goalColumn(usual.goal), SPARKLINE + usual.goal.name] : [];
  return [...FIRST, ...goal, ...(usual?.config ?? []), ...LAST].filter((name) => empty[name] !== true);
}

const DIGITS = 5;
const SMALL = 1e-3;

/** A value of the configuration, the summary or a statistic as the table shows it; empty if there is none. */
export function valueText(value: Json | undefined): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') return numberText(value);
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

function numberText(value: number): string {
  if (Number.isInteger(value)) return String(value);
  const short = Number(value.toPrecision(DIGITS));
  const plain = String(short);
  if (Math.abs(value) >= SMALL || plain.length <= DIGITS + 2) return plain;
  return String(short.toExponential());
}

/** The same with its unit, for a column that has one. */
function unitText(name: string, value: Json | undefined): string {
  const unit = statistic(name)?.unit;
  return unit !== undefined && typeof value === 'number' ? formatValue(value, unit) : valueText(value);
}

/** What a cell of text shows; cells with more than text have parts of their own. */
export function cellText(run: RunRow, name: string, now: number): string {
  switch (name) {
    case 'started':
      return formatAgo(now - run.started_ms);
    case 'duration':
      return formatDuration(durationOf(run, now));
    case 'host':
      return hostText(run);
    case 'project':
      return run.entity === null ? run.project : `${run.entity}/${run.project}`;
    case 'group':
      return run.group ?? '';
    case 'job_type':
      return run.job_type ?? '';
    case 'verdict':
      return verdictOf(run)?.id ?? '';
    case 'lost_hours':
      return lostText(verdictOf(run));
    case 'id':
      return run.id;
    case 'notes':
      return (run.notes ?? '').split('\n', 1)[0]!;
    default:
      return unitText(name, run.columns?.[name]);
  }
}

const MARKS: Record<Total, string> = { mean: '⌀', min: '↧', max: '↥', sum: 'Σ' };

/** A server of an earlier version sends no sums. */
type Summary = Omit<ColumnSummary, 'sum'> & Partial<Pick<ColumnSummary, 'sum'>>;

/** One number of the runs of a group, or of the whole list: `⌀ 0.5`; empty if none of them has one. */
export function totalText(name: string, summary: Summary, total: Total): string {
  const value = summary[total] ?? null;
  return value === null ? '' : `${MARKS[total]} ${summaryText(name, value)}`;
}

/** All that is known of their numbers. */
export function statisticsText(name: string, { n, ...summary }: Summary): string {
  const texts = TOTALS.flatMap((total) => (summary[total] === null || summary[total] === undefined ? [] : [`${total} ${summaryText(name, summary[total])}`]));
  return `${texts.join(' · ')} of ${formatValue(n, '1')} values`;
}

const summaryText = (name: string, value: number): string => (name === 'duration' ? formatDuration(value) : unitText(name, value));
