// What a run logged besides numbers: types and requests of the API, and what the parts of this folder share.

import { request } from '../../../base/address';
import { ApiError, apiPath, get, runPath, type RunKey } from '../../../base/api';
import { guest } from '../../../base/guest.svelte';
import type { Json, MediaKey, SavedFile } from '../../../base/wire';

export type Kind = 'image' | 'audio' | 'video' | 'html' | 'text' | 'table' | 'figure' | 'histogram' | 'file' | (string & {});

export interface HistogramValue {
  counts: number[];
  edges: number[];
  count: number;
}

/** A file, an inline value, or the error because of which there is neither. */
export interface MediaItem {
  kind?: Kind;
  sha256?: string;
  bytes?: number;
  type?: string;
  caption?: string;
  width?: number;
  height?: number;
  /** The file of an image's boxes and masks. */
  annotations?: string;
  /** The same of W&B's client: a file of each set. */
  overlays?: Overlay[];
  /** What a chart shows. */
  table?: MediaItem;
  value?: HistogramValue;
  error?: string;
}

export interface Overlay {
  kind: 'boxes' | 'masks';
  name: string;
  sha256: string;
}

export interface MediaRecord {
  key: string;
  kind: Kind;
  step: number | null;
  time_ms: number;
  rank: number | null;
  host: string;
  items: MediaItem[];
}

export type Cell = Json | (MediaItem & { kind: Kind });

export interface TableContent {
  columns: string[];
  rows: Cell[][];
}

const PAGE = 200;
const MAX_KEYS = 1000;
const MAX_FILES = 5000;
/** A table larger than this is for downloading: a page of it would make the browser slow. */
export const MAX_TABLE_BYTES = 20_000_000;

export const fileUrl = (run: RunKey, sha256: string, download?: string): string =>
  apiPath(runPath(run, `/files/${sha256}`), { download });
export const pageUrl = (run: RunKey, sha256: string): string => apiPath(runPath(run, `/files/${sha256}/page`));

interface Page<T> {
  total: number;
  next: string | null;
  rows: T[];
}

async function all<T>(load: (after: string | null) => Promise<Page<T>>, most: number): Promise<{ rows: T[]; total: number }> {
  const rows: T[] = [];
  let after: string | null = null;
  for (;;) {
    const page: Page<T> = await load(after);
    rows.push(...page.rows);
    after = page.next;
    if (after === null || rows.length >= most) return { rows, total: page.total };
  }
}

export async function loadKeys(run: RunKey, signal: AbortSignal): Promise<MediaKey[]> {
  const load = async (after: string | null): Promise<Page<MediaKey>> => {
    const page = await get<{ media: MediaKey[]; total: number; next: string | null }>(runPath(run, '/media'), { limit: PAGE, after }, signal);
    return { ...page, rows: page.media };
  };
  return (await all(load, MAX_KEYS)).rows;
}

export async function loadFiles(run: RunKey, signal: AbortSignal): Promise<{ rows: SavedFile[]; total: number }> {
  const load = async (after: string | null): Promise<Page<SavedFile>> => {
    const page = await get<{ files: SavedFile[]; total: number; next: string | null }>(runPath(run, '/files'), { limit: PAGE, after }, signal);
    return { ...page, rows: page.files };
  };
  return all(load, MAX_FILES);
}

export async function loadSteps(run: RunKey, key: string, signal: AbortSignal): Promise<number[]> {
  return (await get<{ steps: number[] }>(runPath(run, '/media/steps'), { key }, signal)).steps;
}

/** The records of a key: at one step, or the first ones of all. */
export async function loadRecords(run: RunKey, key: string, step: number | null, signal: AbortSignal, most = PAGE): Promise<MediaRecord[]> {
  const at = step === null ? {} : { first_step: step, last_step: step };
  const load = async (after: string | null): Promise<Page<MediaRecord>> => {
    const page = await get<{ records: MediaRecord[]; total: number; next: string | null }>(
      runPath(run, '/media/records'),
      { key, ...at, limit: Math.min(most, PAGE), after },
      signal,
    );
    return { ...page, rows: page.records };
  };
  return (await all(load, most)).rows;
}

/** Browsers cannot send the header of a guest link with an image or a download: a guest gets a copy in memory. */
export async function guestCopy(run: RunKey, sha256: string, signal: AbortSignal): Promise<string> {
  const response = await request(fileUrl(run, sha256), { signal, headers: guest.headers() });
  if (!response.ok) throw new ApiError(response.status, `The server responded with ${response.status}.`);
  return URL.createObjectURL(await response.blob());
}

export async function loadText(run: RunKey, sha256: string, signal: AbortSignal): Promise<string> {
  let response: Response;
  try {
    response = await request(fileUrl(run, sha256), { signal, headers: guest.headers() });
  } catch (error) {
    if (signal.aborted) throw error;
    throw new ApiError(0, 'The server does not respond. Is it running?');
  }
  if (response.ok) return response.text();
  throw new ApiError(response.status, response.status === 404 ? 'The file has not arrived yet.' : `The server responded with ${response.status}.`);
}

export async function loadTable(run: RunKey, sha256: string, signal: AbortSignal): Promise<TableContent> {
  const table = JSON.parse(await loadText(run, sha256, signal)) as TableContent;
  if (!Array.isArray(table?.columns) || !Array.isArray(table?.rows)) throw new Error('This is not a table.');
  return table;
}

export const isMediaCell = (cell: Cell): cell is MediaItem & { kind: Kind } =>
  typeof cell === 'object' && cell !== null && !Array.isArray(cell) && typeof (cell as { kind?: unknown }).kind === 'string';

export function cellText(cell: Cell): string {
  if (cell === null) return '';
  if (typeof cell === 'number') return Number.isInteger(cell) ? String(cell) : String(Number(cell.toPrecision(7)));
  if (typeof cell === 'boolean') return cell ? 'true' : 'false';
  return typeof cell === 'string' ? cell : JSON.stringify(cell);
}

/** The order of two cells: numbers before texts, nothing last. */
export function compareCells(a: Cell, b: Cell): number {
  const rank = (cell: Cell): number => (cell === null ? 2 : typeof cell === 'number' || typeof cell === 'boolean' ? 0 : 1);
  const difference = rank(a) - rank(b);
  if (difference !== 0 || a === null || b === null) return difference;
  if (rank(a) === 0) return Number(a) - Number(b);
  return cellText(a).localeCompare(cellText(b), undefined, { numeric: true });
}

/** A number with three digits. */
export const shortNumber = (value: number): string => String(Number(value.toPrecision(3)));

/** The histogram of some records; null if none has one. */
export const histogramOf = (records: readonly MediaRecord[]): HistogramValue | null =>
  records.flatMap(({ items }) => items).find(({ value }) => value !== undefined)?.value ?? null;

/** The index of the step that is nearest to one. */
export function nearest(steps: readonly number[], step: number): number {
  let best = 0;
  for (let i = 1; i < steps.length; i++) if (Math.abs(steps[i]! - step) < Math.abs(steps[best]! - step)) best = i;
  return best;
}

export interface Heatmap {
  low: number;
  high: number;
  /** One column a histogram, each with the share of its values in every row, from the lowest row up. */
  columns: Float64Array[];
}

/** Histograms with edges of their own, on one grid of equal rows. Counts are spread evenly within their bin. */
export function heatmap(histograms: readonly HistogramValue[], rows: number): Heatmap {
  const edges = histograms.flatMap(({ edges: ownEdges }) => ownEdges).filter(Number.isFinite);
  let low = edges.reduce((a, b) => Math.min(a, b), Infinity);
  let high = edges.reduce((a, b) => Math.max(a, b), -Infinity);
  if (!(low < high)) [low, high] = Number.isFinite(low) ? [low - 0.5, high + 0.5] : [0, 1];
  const height = (high - low) / rows;
  const columns = histograms.map(({ counts, edges: ownEdges }) => {
    const column = new Float64Array(rows);
    const total = counts.reduce((a, b) => a + b, 0) || 1;
    counts.forEach((count, i) => {
      const from = (ownEdges[i]! - low) / height;
      const to = (ownEdges[i + 1]! - low) / height;
      const first = Math.min(rows - 1, Math.max(0, Math.floor(from)));
      const last = Math.min(rows - 1, Math.max(first, Math.ceil(to) - 1));
      const width = to - from;
      for (let row = first; row <= last; row++) {
        const part = width > 0 ? (Math.min(to, row + 1) - Math.max(from, row)) / width : 1 / (last - first + 1);
        column[row]! += (Math.max(0, part) * count) / total;
      }
    });
    return column;
  });
  return { low, high, columns };
}

/** At most so many of some items, evenly spaced, with the last one. */
export function spaced<T>(items: readonly T[], most: number): T[] {
  if (items.length <= most) return [...items];
  return Array.from({ length: most }, (_, i) => items[Math.round((i * (items.length - 1)) / (most - 1))]!);
}
