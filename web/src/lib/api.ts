// Types and requests of the API, /api/v1. The types follow /api/v1/openapi.json.

export type State = 'running' | 'finished' | 'failed' | 'crashed' | 'stopped' | 'lost';
export type Value = number | null;
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export interface Ending {
  state: State;
  exit_code: number | null;
  signal: number | null;
  out_of_memory: boolean | null;
}

export interface Host extends Ending {
  name: string;
  started_ms: number;
  last_ms: number;
  interval_s: number | null;
  monitors: number;
}

export interface RunRow extends Ending {
  id: string;
  project: string;
  name: string;
  group: string | null;
  job_type: string | null;
  tags: string[];
  started_ms: number;
  ended_ms: number | null;
  duration_ms: number;
  hosts: Host[];
  summary: Record<string, Json>;
  last: Record<string, Record<string, Value>>;
  /** When a user requested its end; null: not requested. */
  stop_requested_ms: number | null;
}

export interface Rank {
  host: string;
  pid: number;
  rank: number | null;
  local_rank: number | null;
  world_size: number | null;
  exit_code: number | null;
  signal: number | null;
  out_of_memory: boolean | null;
  ended_ms: number | null;
}

export interface RunEvent {
  time_ms: number;
  name: string;
  level: string;
  text: string;
  host: string;
  rank: number | null;
  data: Record<string, Json>;
}

export interface Source {
  state?: string;
  reason?: string;
}

export interface RunDetail extends RunRow {
  notes: string;
  command: string[];
  config: Record<string, Json>;
  settings: Record<string, Json>;
  machines: Record<string, Record<string, Json>>;
  sources: Record<string, Record<string, Source>>;
  ranks: Rank[];
  events: RunEvent[];
  lost_records: number;
  problems: string[];
}

export interface RunPage {
  runs: RunRow[];
  total: number;
  next: string | null;
}

/** What the server is, and what it can do. */
export interface About {
  version: string;
  kind: 'local' | 'server';
  capabilities: string[];
}

/** Changes of a run by a user: the keys to set. */
export interface RunChanges {
  name?: string;
  notes?: string;
  tags?: string[];
}

export interface Project {
  name: string;
  runs: number;
  running: number;
  newest_ms: number;
}

export interface SeriesInfo {
  key: string;
  template: string;
  host: string;
  role: string;
  unit: string;
  kind: 'gauge' | 'counter' | 'rate' | null;
  subject: string;
  chart: string;
  text: string;
  source: string;
  n: number;
  first_ms: number;
  last_ms: number;
  min: Value;
  max: Value;
  last: Value;
  /** What MLflow calls it, and in which unit. */
  mlflow: { name: string; unit: string; factor: number } | null;
}

export interface MetricGroup {
  host: string;
  role: string;
  t: number[];
  n: number[] | null;
  series: Record<string, Value[]>;
  min: Record<string, Value[]> | null;
  max: Record<string, Value[]> | null;
}

export interface Metrics {
  run: string;
  t0: number;
  t1: number;
  resolution: 'raw' | 'buckets';
  bucket_ms: number | null;
  cursor: string;
  groups: MetricGroup[];
}

export interface LoggedGroup {
  host: string;
  rank: number | null;
  step: number[];
  t: Value[];
  n: number[] | null;
  series: Record<string, Value[]>;
  min: Record<string, Value[]> | null;
  max: Record<string, Value[]> | null;
}

export interface Logged {
  run: string;
  cursor: string;
  groups: LoggedGroup[];
}

export interface Sample {
  host: string;
  role: string;
  t: number;
  values: Record<string, Value>;
}

export interface LoggedRow {
  host: string;
  rank: number | null;
  step: number;
  t: number;
  values: Record<string, Value>;
}

/** A live event. */
export interface News {
  samples?: Sample[];
  calls?: LoggedRow[];
  run?: RunDetail;
  reload?: boolean;
}

export interface ConsolePiece {
  time_ms: number;
  stream: 'stdout' | 'stderr';
  text: string;
  host: string;
  rank: number | null;
}

export interface Console {
  cut: boolean;
  pieces: ConsolePiece[];
}

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** Why something failed: the server's error text, else the browser's. */
export const reasonOf = (problem: unknown): string => (problem instanceof Error ? problem.message : String(problem));

/** Any error as an ApiError; status -1 if it is not from the server. */
export const asApiError = (problem: unknown): ApiError =>
  problem instanceof ApiError ? problem : new ApiError(-1, reasonOf(problem));

export type Params = Record<string, string | number | string[] | null | undefined>;

/** GET a JSON response. Throws an ApiError with the server's error text. */
export const get = <T>(path: string, params: Params = {}, signal?: AbortSignal): Promise<T> =>
  ask<T>(address(path, params), { signal });

/** A request that changes something. It is JSON, because pages of other sites cannot send that. */
export async function send(method: 'POST' | 'PATCH' | 'DELETE', path: string, body: object = {}): Promise<void> {
  await ask(address(path), { method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
}

async function ask<T>(url: string, how: RequestInit): Promise<T> {
  let response: Response;
  try {
    response = await fetch(url, how);
  } catch (error) {
    if (how.signal?.aborted) throw error;
    throw new ApiError(0, 'The server does not respond. Is it running?');
  }
  if (response.ok) return (await response.json()) as T;
  if (response.status === 401) toLogin();
  throw new ApiError(response.status, await errorText(response));
}

/** Go to the login page, which redirects back to this view. */
function toLogin(): void {
  window.location.assign(`/login?next=${encodeURIComponent(window.location.pathname + window.location.search)}`);
}

async function errorText(response: Response): Promise<string> {
  try {
    const answer = (await response.json()) as { error?: unknown };
    if (typeof answer.error === 'string') return answer.error;
  } catch {
    // Not JSON, for example a proxy's error page: report the status.
  }
  return `The server responded with ${response.status} ${response.statusText}`;
}

export function address(path: string, params: Params = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value === null || value === undefined) continue;
    for (const item of Array.isArray(value) ? value : [value]) query.append(name, String(item));
  }
  const text = query.toString();
  return `/api/v1/${path}${text && `?${text}`}`;
}

export const runPath = (id: string): string => `runs/${encodeURIComponent(id)}`;
