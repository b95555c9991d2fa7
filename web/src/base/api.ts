// Requests of the API, /api/v1, and the types that the page makes of `wire.ts`, which `scripts/wire-types` writes.

import { request } from './address';
import { takeEarly } from './early';
import { guest } from './guest.svelte';
import type * as wire from './wire';
import type { ConsoleAnswer, DefinedMetric, Ending, Event, HostState, ListedRun, NewRow, NewSample, PrintedPiece, Rank, RunAuthor } from './wire';

export type State = 'running' | 'finished' | 'failed' | 'crashed' | 'stopped' | 'lost';
export type Value = number | null;

export type Host = HostState;

/** In lists, with the columns that were asked for. */
export type RunRow = wire.RunRow & Partial<Pick<ListedRun, 'notes' | 'columns' | 'sparklines'>>;

export type RunEvent = Event;

export interface Source {
  state?: string;
  reason?: string;
}

export interface RunDetail extends Omit<wire.RunDetail, 'sources'> {
  sources: Record<string, Record<string, Source>>;
}

export type Goal = 'minimize' | 'maximize';

/** By name, or pattern in which `*` matches any characters. */
export type DefinedMetrics = Record<string, DefinedMetric>;

export type Access = 'full' | 'viewer' | 'none';

/** How a user wants the page to be. Empty: nothing was chosen. */
export interface Preferences {
  theme: '' | 'system' | 'light' | 'dark';
  time_zone: string;
  locale: string;
  /** The path that the user sees first. */
  landing_page: string;
}

/** Who is signed in. */
export type Account = wire.IdentifiedUser;

/** A series of a run, from the plan of its charts. */
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
  /** All values so far are 0; false for gauges, of which it is not known. */
  zero: boolean;
  /** What MLflow calls it, and in which unit. */
  mlflow: { name: string; unit: string; factor: number } | null;
}

export type Sample = NewSample;

export type LoggedRow = NewRow;

/** A live event. */
export type News = Partial<Omit<wire.News, 'run'>> & { run?: RunDetail | null };

export type ConsolePiece = PrintedPiece;

export type Console = ConsoleAnswer;

/** Errors of a form's fields, by the names of the request: `{"links[2].url": "expected http or https"}`. */
export type FieldErrors = Record<string, string>;

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    /** The whole JSON of the error, for what only some errors have. */
    readonly body: Record<string, unknown> = {},
  ) {
    super(message);
  }

  /** The server does not have the address, because it is of an earlier version. */
  get older(): boolean {
    return this.status === 404 && String(this.body.error).startsWith('there is no /api/');
  }

  /** The same request may be answered later: there was no response, or the server could not give one. */
  get passing(): boolean {
    return this.status === 0 || this.status >= 500;
  }

  get fields(): FieldErrors {
    return (this.body.fields ?? {}) as FieldErrors;
  }
}

/** Why something failed: the server's error text, else the browser's. */
export const reasonOf = (problem: unknown): string => (problem instanceof Error ? problem.message : String(problem));

/** Any error as an ApiError; status -1 if it is not from the server. */
export const asApiError = (problem: unknown): ApiError =>
  problem instanceof ApiError ? problem : new ApiError(-1, reasonOf(problem));

export type Params = Record<string, string | number | string[] | null | undefined>;
export type Method = 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** GET a JSON response. Throws an ApiError with the server's error text. */
export const get = <T>(path: string, params: Params = {}, signal?: AbortSignal): Promise<T> =>
  ask<T>(apiPath(path, params), { signal });

/**
 * A request that changes something. It is JSON, because pages of other sites cannot send that.
 *
 * If no response arrives, the same request again has the same key: the server carries it out once.
 */
export async function send<T = void>(method: Method, path: string, body: object = {}): Promise<T> {
  const text = JSON.stringify(body);
  const asked = `${method} ${path} ${text}`;
  const key = unanswered.get(asked) ?? randomKey();
  unanswered.set(asked, key);
  try {
    const headers = { 'content-type': 'application/json', 'idempotency-key': key };
    const answer = await ask<T>(apiPath(path), { method, headers, body: text });
    unanswered.delete(asked);
    return answer;
  } catch (problem) {
    if (!(problem instanceof ApiError && problem.status === 0)) unanswered.delete(asked);
    throw problem;
  }
}

/** Send what may be lost, and is sent again: without a key, by which the server would keep its answer for a day. */
export const sendBriefly = <T = void>(method: Method, path: string): Promise<T> => ask<T>(apiPath(path), { method, headers: { 'content-type': 'application/json' } });

/** The keys of requests to which no response has arrived. */
const unanswered = new Map<string, string>();

const randomKey = (): string => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');

/** Send a file as it is; its media type says what it is. */
export const upload = <T = void>(path: string, file: Blob, method: 'PUT' | 'POST' = 'PUT'): Promise<T> =>
  ask<T>(apiPath(path), { method, headers: { 'content-type': file.type }, body: file });

/** A file, by its address. */
export const getFile = (url: string): Promise<Blob> => ask<Blob>(url, {});

/** What the page does when the server asks for more; the page sets it at its start. */
export const onDemand = {
  /** The server responded, whatever it said. */
  responded: (): void => undefined,
  /** Nobody is signed in. */
  signIn: (): void => undefined,
  /** The password must be confirmed first. Resolves to whether it was. */
  confirmPassword: (): Promise<boolean> => Promise.resolve(false),
};

/** Requests whose 401 means a wrong password, or that nobody needs to be signed in. */
const MAY_BE_SIGNED_OUT = /^\/api\/v1\/(about$|auth\/|account\/password$)/;

/** Why a request failed to which there was no response. */
export const NO_RESPONSE = 'The server does not respond. Is it running?';

let reached = true;

/** Whether the server responded to the last request or event stream. */
export const wasReached = (): boolean => reached;
export const noteReached = (whether: boolean): void => void (reached = whether);

async function ask<T>(url: string, how: RequestInit): Promise<T> {
  let response: Response;
  try {
    response = await ((how.method === undefined && takeEarly(url)) || request(url, { ...how, headers: { ...how.headers, ...guest.headers() } }));
  } catch (error) {
    if (how.signal?.aborted) throw error;
    noteReached(false);
    throw new ApiError(0, NO_RESPONSE);
  }
  noteReached(true);
  onDemand.responded();
  if (response.status === 204) return undefined as T;
  const type = response.headers.get('content-type') ?? '';
  if (response.ok && /zip|csv/.test(type)) return (await response.blob()) as T;
  if (response.ok) return type.includes('json') ? ((await response.json()) as T) : (undefined as T);
  if (response.status === 428 && (await onDemand.confirmPassword())) return ask<T>(url, how);
  if (guest.active()) throw guest.checked(await errorOf(response));
  if (response.status === 401 && !MAY_BE_SIGNED_OUT.test(url)) onDemand.signIn();
  throw await errorOf(response);
}

async function errorOf(response: Response): Promise<ApiError> {
  const status = `The server responded with ${response.status} ${response.statusText}`;
  try {
    const body = (await response.json()) as Record<string, unknown>;
    // Only a server of another version lacks an address that this page requests.
    const error = new ApiError(response.status, typeof body.error === 'string' ? body.error : status, body);
    if (error.older) return new ApiError(404, 'The server is older than this page and cannot do this. Reload the page; if that does not help, the server must be updated.', body);
    return error;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error; // the request was aborted, or the connection broke
    return new ApiError(response.status, status); // not JSON, for example a proxy's error page
  }
}

export function apiPath(path: string, params: Params = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value === null || value === undefined) continue;
    for (const item of Array.isArray(value) ? value : [value]) query.append(name, String(item));
  }
  const text = query.toString();
  return `/api/v1/${path}${text && `${path.includes('?') ? '&' : '?'}${text}`}`;
}

/** Which run: the team or user that has it, null without accounts, and its id, which is unique there only. */
export interface RunKey {
  id: string;
  entity: string | null;
}

/** `rest`: of the path, such as `/series`. */
export const runPath = ({ id, entity }: RunKey, rest = ''): string =>
  `runs/${encodeURIComponent(id)}${rest}${entity === null ? '' : `?entity=${encodeURIComponent(entity)}`}`;

export const projectPath = ({ entity, name }: { entity: string; name: string }, rest = ''): string =>
  `entities/${encodeURIComponent(entity)}/projects/${encodeURIComponent(name)}${rest}`;
