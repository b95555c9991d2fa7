// Where the values of panels come from: metrics of many runs with a line each, or of each device and rank of a few runs.

import { get, runPath, type Params, type RunKey } from '../../../base/api';
import type { Places } from '../../findings/chartMarks';
import { byMetric, byTime, fromLogged, valuesAt, type LoggedLines, type LoggedPoints } from '../../../chart/loggedPoints';
import { centred, type RunPoints } from '../overlay';
import type { PanelX } from '../panel';
import { fromMetrics, type Points, type Range } from '../../../chart/points';
import type { MetricName, Source } from './expression';
import type { Logged, Metrics, OverlayMetric, OverlayRun } from '../../../base/wire';

/** Points of a line of a device in one response. */
export const MAX_POINTS = 500;
/** Of so many runs each device is requested; a request for each of them would take too long for more. */
export const MAX_RUNS_BY_DEVICE = 8;

/** A metric of a source. The name of a system metric may have `*` for what differs between devices. */
export interface KnownMetric {
  source: Source;
  name: string;
}

/** What a line is about. null: it is about all of them. */
export interface Subject {
  run: string;
  host: string | null;
  rank: number | null;
  device: string | null;
}

export interface SourceLine {
  subject: Subject;
  points: Points;
}

export type SourceLines = ReadonlyMap<string, readonly SourceLine[]>;

export const metricId = ({ source, name }: KnownMetric): string => `${source}:${name}`;

/** The metrics that runs have. */
export interface MetricNames {
  logged: readonly string[];
  /** With `*` for what differs between devices. */
  system: readonly string[];
  /** Of the system's, by name. */
  units: ReadonlyMap<string, string>;
}

export const NO_NAMES: MetricNames = { logged: [], system: [], units: new Map() };

/** The names of metrics that runs logged, and of those of the system: these are templates (`gpu.{i}.temp`). */
export function namesOf(logged: readonly string[], system: readonly OverlayMetric[]): MetricNames {
  const units = new Map(system.map(({ key, unit }) => [key.replace(/\{[^{}]*\}/g, '*'), unit]));
  return { logged, system: [...units.keys()], units };
}

/** Which source a metric of an expression is from. */
export function known({ name, source }: MetricName, { logged, system }: MetricNames): KnownMetric {
  if (source) return { name, source };
  return { name, source: !logged.includes(name) && system.some((pattern) => isPart(name, pattern)) ? 'system' : 'logged' };
}

/** Whether a name is a metric of the system, or one or some of its devices. */
const isPart = (name: string, pattern: string): boolean => name === pattern || deviceIn(pattern, name) !== null;

/** Whether a run has the metric, as far as its name says. */
export const isRecorded = ({ source, name }: KnownMetric, { logged, system }: MetricNames): boolean =>
  source === 'logged' ? logged.includes(name) : system.some((pattern) => isPart(name, pattern));

export function unitOf({ source, name }: KnownMetric, { system, units }: MetricNames): string {
  return source === 'logged' ? '' : (units.get(system.find((pattern) => isPart(name, pattern)) ?? '') ?? '');
}

/** What `*` stands for where a pattern is this key, joined by dots; null if it is another key. */
export function deviceIn(pattern: string, key: string): string | null {
  const [first, ...pieces] = pattern.split('*') as [string, ...string[]];
  if (pieces.length === 0) return pattern === key ? '' : null;
  const last = pieces.pop()!;
  const end = key.length - last.length;
  if (!key.startsWith(first) || !key.endsWith(last)) return null;
  const parts: string[] = [];
  let at = first.length;
  for (const piece of pieces) {
    const index = key.indexOf(piece, at + 1);
    if (index < 0) return null;
    parts.push(key.slice(at, index));
    at = index + piece.length;
  }
  if (end <= at) return null;
  return [...parts, key.slice(at, end)].join('.');
}

/** The API's glob for a metric of the system: only `*` has a meaning in it. */
export const globOf = (name: string): string => name.replace(/[?[]/g, (letter) => `[${letter}]`);

/** A line for each run that has points, in the order of the runs. */
export function runLines(points: RunPoints, x: PanelX, width: number | null, runs: readonly OverlayRun[]): SourceLine[] {
  const isTime = x === 'relative' || x === 'wall';
  return runs.flatMap(({ id }) => {
    const runPoints = points.get(id);
    if (!runPoints) return [];
    return [{ subject: { run: id, host: null, rank: null, device: null }, points: isTime && width !== null ? centred(runPoints, width) : runPoints }];
  });
}

/** The x axis of a panel. */
export interface PanelAxis {
  x: PanelX;
  /** It is logarithmic. */
  log: boolean;
  /** The part that is shown; null: all. */
  zoom: Range | null;
}

/** The lines of metrics for each device and rank of the first runs, by `metricId`. */
export async function loadDevices(metrics: readonly KnownMetric[], { x, log, zoom }: PanelAxis, runs: readonly OverlayRun[], entity: string | null, signal: AbortSignal): Promise<SourceLines> {
  const linesById = new Map<string, SourceLine[]>(metrics.map((metric) => [metricId(metric), []]));
  const system = metrics.filter(({ source }) => source === 'system');
  const logged = metrics.filter(({ source }) => source === 'logged');
  await Promise.all(
    runs.slice(0, MAX_RUNS_BY_DEVICE).map(async (run) => {
      const key = { id: run.id, entity };
      const [sampled, rows] = await Promise.all([
        system.length > 0 ? get<Metrics>(runPath(key, '/metrics'), { keys: system.map(({ name }) => globOf(name)), max_points: MAX_POINTS, ...timesOf(zoom, x, run), ...(log && { log_from: run.started_ms }) }, signal) : null,
        logged.length > 0 ? get<Logged>(runPath(key, '/history'), { keys: namesFor(logged, x), max_points: MAX_POINTS, ...(zoom && x === 'step' && { first_step: Math.floor(zoom.min), last_step: Math.ceil(zoom.max) }), ...(log && { scale: 'log' }) }, signal) : null,
      ]);
      const lines = rows && fromLogged(rows);
      for (const metric of metrics) linesById.get(metricId(metric))!.push(...deviceLines(metric, x, run, sampled, lines));
    }),
  );
  return linesById;
}

/** The times of a part of an axis of times. */
function timesOf(zoom: Range | null, x: PanelX, run: OverlayRun): Params {
  if (!zoom || (x !== 'relative' && x !== 'wall')) return {};
  const zero = x === 'relative' ? run.started_ms : 0;
  return { t0: zero + Math.floor(zoom.min), t1: zero + Math.ceil(zoom.max) };
}

/** Where what was logged at which time is on an axis, of each process. */
export async function loadPlaces(names: readonly string[], x: PanelX, run: RunKey, signal: AbortSignal): Promise<Places[]> {
  const across = metricOfX(x);
  const logged = names.map((name): KnownMetric => ({ source: 'logged', name }));
  const lines = fromLogged(await get<Logged>(runPath(run, '/history'), { keys: namesFor(logged, x), max_points: MAX_POINTS }, signal));
  return names.flatMap((name) => [...(lines.get(name) ?? [])].map(([label, points]) => ({ t: points.t, at: across === null ? points.x : valuesAt(points, lines.get(across)?.get(label)) })));
}

/** The lines of a metric for each device and rank of a run, of what it sampled or logged. */
export function deviceLines({ source, name }: KnownMetric, x: PanelX, run: OverlayRun, sampled: Metrics | null, logged: ReadonlyMap<string, LoggedLines> | null): SourceLine[] {
  if (source === 'system') return sampled ? sampledLines(sampled, name, x, run) : [];
  return logged ? loggedLines(logged, name, x, run) : [];
}

const METRIC = 'metric:';
const metricOfX = (x: PanelX): string | null => (x.startsWith(METRIC) ? x.slice(METRIC.length) : null);

function namesFor(logged: readonly KnownMetric[], x: PanelX): string[] {
  const across = metricOfX(x);
  return [...new Set([...logged.map(({ name }) => name), ...(across === null ? [] : [across])])];
}

function sampledLines(answer: Metrics, name: string, x: PanelX, run: OverlayRun): SourceLine[] {
  return [...fromMetrics(answer)].flatMap(([id, points]) => {
    const [host, , key] = id.split('\n') as [string, string, string];
    const device = deviceIn(name, key);
    if (device === null) return [];
    return [{ subject: { run: run.id, host, rank: null, device: device || null }, points: shifted(points, x, run) }];
  });
}

function loggedLines(lines: ReadonlyMap<string, LoggedLines>, name: string, x: PanelX, run: OverlayRun): SourceLine[] {
  const across = metricOfX(x);
  return [...(lines.get(name) ?? [])].map(([label, points]) => ({
    subject: { run: run.id, host: points.host, rank: points.rank, device: null },
    points: onAxis(points, x, run, across === null ? undefined : lines.get(across)?.get(label)),
  }));
}

function onAxis(points: LoggedPoints, x: PanelX, run: OverlayRun, across: LoggedPoints | undefined): Points {
  if (x === 'step') return points;
  return x === 'relative' || x === 'wall' ? shifted(byTime(points), x, run) : byMetric(points, across);
}

/** Points over the time since the run began, where that is wanted. */
const shifted = (points: Points, x: PanelX, { started_ms }: OverlayRun): Points =>
  x === 'relative' ? { ...points, x: points.x.map((t) => t - started_ms) } : points;
