// Addresses of the values of charts as CSV: those of the API, with the numbers that it also sends as JSON.

import { apiPath, runPath, type Params, type RunKey } from '../../../base/api';
import type { Range } from '../../../chart/points';
import type { ChartPlan } from './chartPlan';
import { CARD_POINTS } from '../../../base/early';

/** Exact keys in one address; with more, patterns are shorter. */
const MAX_KEYS = 60;
/** The server takes 100 patterns in one request. */
const MAX_PATTERNS = 90;

interface Tables {
  shown: string;
  all: string;
}

function tables(run: RunKey, source: 'metrics' | 'history', params: Params, points: number): Tables {
  const path = runPath(run, `/${source}`);
  return {
    shown: apiPath(path, { ...params, max_points: points, format: 'csv' }),
    all: apiPath(path, { ...params, resolution: 'raw', format: 'csv' }),
  };
}

/** `logFrom`: the zero of a logarithmic axis. */
const times = (zoom: Range | null, logFrom: number | null): Params => ({ ...(zoom && { t0: Math.floor(zoom.min), t1: Math.ceil(zoom.max) }), ...(logFrom !== null && { log_from: logFrom }) });

/** The values of one chart of samples. */
export function chartTables(run: RunKey, { series, patterns }: ChartPlan, zoom: Range | null, logFrom: number | null, points = CARD_POINTS): Tables {
  const keys = [...new Set(series.map((item) => item.key))];
  const hosts = new Set(series.map((item) => item.host));
  const asked = keys.length <= MAX_KEYS ? keys.map(exactly) : patterns;
  return tables(run, 'metrics', { keys: asked, host: hosts.size === 1 ? [...hosts][0] : null, ...times(zoom, logFrom) }, points);
}

/** The values of all charts, as many as are shown; of the whole run if the charts are too many to name. */
export function pageTable(run: RunKey, charts: readonly ChartPlan[], zoom: Range | null, logFrom: number | null): string {
  const patterns = [...new Set(charts.flatMap((chart) => chart.patterns))];
  return tables(run, 'metrics', { keys: patterns.length <= MAX_PATTERNS ? patterns : null, ...times(zoom, logFrom) }, CARD_POINTS).shown;
}

export const loggedTables = (run: RunKey, names: readonly string[], points: number, log = false): Tables =>
  tables(run, 'history', { keys: [...names], ...(log && { scale: 'log' }) }, points);

/** A key as a pattern that matches itself only. */
const exactly = (key: string): string => key.replace(/[*?[]/g, (letter) => `[${letter}]`);
