// What the address of a view says about its charts. Anything unknown in an address is ignored.

import type { Range } from './points';
import { SMOOTHING_KINDS, type SmoothingKind } from './smoothing';

export const Y_SCALES = ['auto', 'linear', 'log', 'symlog', 'percent'] as const;
export type YScale = (typeof Y_SCALES)[number];
export const MODES = ['heatmap', 'band', 'lines'] as const;
/** How many devices are drawn: a row of a heatmap each, one band with their mean, or a line each. */
export type Mode = (typeof MODES)[number];

/** `share`: the width, in percent of the whole x axis, so that it means the same on every axis. */
export interface SmoothingChoice {
  kind: SmoothingKind;
  share: number;
}

export interface ChartOptions {
  y: YScale;
  smoothing: SmoothingChoice | null;
  /** Leave outliers out of the y axis. */
  outliersAside: boolean;
  /** null: as the number of lines suggests. */
  mode: Mode | null;
}

export interface ChartState {
  options: ChartOptions;
  /** Options that are set for this chart only. */
  own: boolean;
  hidden: ReadonlySet<string>;
  pinned: ReadonlySet<string>;
}

export type Changes = Record<string, string | null>;

export const MAX_SHARE = 25;

const choice = <T extends string>(choices: readonly T[], text: string | null): T | null => choices.find((choice) => choice === text) ?? null;

export function smoothingOf(text: string | null): SmoothingChoice | null {
  const [name, percent] = (text ?? '').split(':');
  const kind = choice(SMOOTHING_KINDS, name ?? '');
  const share = Number(percent);
  return kind && share > 0 && share <= MAX_SHARE ? { kind, share } : null;
}

function optionsOf(query: URLSearchParams, otherwise: URLSearchParams | null = null, preset: Changes = {}): ChartOptions {
  const value = (name: string): string | null => query.get(name) ?? otherwise?.get(name) ?? preset[name] ?? null;
  return {
    y: choice(Y_SCALES, value('y')) ?? 'auto',
    smoothing: smoothingOf(value('smooth')),
    outliersAside: value('outliers') === 'aside',
    mode: choice(MODES, value('mode')),
  };
}

/** The options of all charts of a view. */
export const pageOptions = (query: URLSearchParams): ChartOptions => optionsOf(query);

const nameOf = (chart: string): string => `chart.${chart.replaceAll('\n', '~')}`;

/** What an address says about one chart, as text: as long as it is the same, so is the state of the chart. */
export const chartStateText = (query: URLSearchParams, chart: string): string =>
  ['y', 'smooth', 'outliers', 'mode', nameOf(chart)].map((name) => query.get(name) ?? '').join('\n');

/** The state of one chart: its own options where it has some, otherwise those of all charts, otherwise its preset ones. */
export function chartState(query: URLSearchParams, chart: string, preset: Partial<ChartOptions> = {}): ChartState {
  const own = new URLSearchParams(query.get(nameOf(chart)) ?? '');
  return {
    options: optionsOf(own, query, optionChanges(preset)),
    own: ['y', 'smooth', 'outliers', 'mode'].some((name) => own.has(name)),
    hidden: new Set(own.getAll('hide')),
    pinned: new Set(own.getAll('pin')),
  };
}

/** What options are in an address; null for the default. */
export function optionChanges(options: Partial<ChartOptions>): Changes {
  const changes: Changes = {};
  if (options.y !== undefined) changes.y = options.y === 'auto' ? null : options.y;
  if (options.smoothing !== undefined) {
    changes.smooth = options.smoothing && `${options.smoothing.kind}:${options.smoothing.share}`;
  }
  if (options.outliersAside !== undefined) changes.outliers = options.outliersAside ? 'aside' : null;
  if (options.mode !== undefined) changes.mode = options.mode;
  return changes;
}

/** Options of one chart; `null` gives it those of all charts again. */
export function chartOptionChanges(query: URLSearchParams, chart: string, options: Partial<ChartOptions> | null): Changes {
  const own = new URLSearchParams(query.get(nameOf(chart)) ?? '');
  if (options === null) for (const name of ['y', 'smooth', 'outliers', 'mode']) own.delete(name);
  else for (const [name, value] of Object.entries(optionChanges(options))) own.set(name, value ?? 'default');
  return { [nameOf(chart)]: own.toString() || null };
}

/** Hide or show, pin or unpin a series of a chart. */
export function seriesChanges(query: URLSearchParams, chart: string, choice: 'hide' | 'pin', series: readonly string[]): Changes {
  const own = new URLSearchParams(query.get(nameOf(chart)) ?? '');
  own.delete(choice);
  for (const id of series) own.append(choice, id);
  return { [nameOf(chart)]: own.toString() || null };
}

/** The API knows no times beyond it. */
const FARTHEST = 2 ** 53;

/** The zoom; null if the address has none. */
export function zoomOf(query: URLSearchParams): Range | null {
  const [from, to] = [query.get('from'), query.get('to')];
  if (!from || !to) return null;
  const range = { min: Number(from), max: Number(to) };
  return range.max > range.min && range.min >= -FARTHEST && range.max <= FARTHEST ? range : null;
}

/** Before it, in 1973, no run was: links that were made earlier have steps there. */
const FIRST_TIME_MS = 1e11;

/** The selected times; null if the address has none. */
export function selectedTimes(query: URLSearchParams): Range | null {
  const zoom = zoomOf(query);
  return zoom && zoom.max >= FIRST_TIME_MS ? zoom : null;
}

/** The selected steps, exactly; null if the address has only times, or nothing. */
export function selectedSteps(query: URLSearchParams): Range | null {
  const [from = '', to = ''] = (query.get('steps') ?? '').split('~');
  const zoom = zoomOf(query);
  return zoomOf(new URLSearchParams({ from, to })) ?? (zoom && zoom.max < FIRST_TIME_MS ? zoom : null);
}

/**
 * Select a part of a run, for all its views: its times, and on an axis that counts something else that too, so that
 * exactly it is shown there.
 *
 * `metric`: the name of the logged metric that the axis counts; null: steps.
 */
export function selectionChanges(query: URLSearchParams, times: Range | null, exactly: { metric: string | null; range: Range } | null = null): Changes {
  const others = [...query.keys()].filter((name) => name.startsWith('zoom.'));
  const changes: Changes = { ...Object.fromEntries(others.map((name) => [name, null])), ...zoomChanges(times), steps: null };
  if (exactly?.metric === null) changes.steps = rangeText(exactly.range);
  else if (exactly) changes[metricZoomName(exactly.metric)] = rangeText(exactly.range);
  return changes;
}

/** What of an address is about the selected part of a run. */
export const selectionOf = (query: URLSearchParams): Changes =>
  Object.fromEntries([...query].filter(([name]) => ['from', 'to', 'steps'].includes(name) || name.startsWith('zoom.')));

const rangeText = ({ min, max }: Range): string => `${shortNumber(min)}~${shortNumber(max)}`;

const metricZoomName = (metric: string): string => `zoom.${metric}`;

/** The zoom of the charts that have a metric of their own as x axis. */
export function metricZoomOf(query: URLSearchParams, metric: string): Range | null {
  const [from = '', to = ''] = (query.get(metricZoomName(metric)) ?? '').split('~');
  return zoomOf(new URLSearchParams({ from, to }));
}

export const zoomChanges = (zoom: Range | null): Changes =>
  zoom ? { from: shortNumber(zoom.min), to: shortNumber(zoom.max) } : { from: null, to: null };

/** Whole milliseconds and steps where they are large, otherwise as precise as a screen. */
const shortNumber = (value: number): string => String(Math.abs(value) >= 1e5 ? Math.round(value) : Number(value.toPrecision(7)));
