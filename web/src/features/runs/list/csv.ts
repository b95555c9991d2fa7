// The selected runs as one CSV file. A filter names some runs at a time, so it is put together of several answers.

import { get, type Params, type RunKey } from '../../../base/api';
import { quoted } from './filterText';

/** Of one filter, as the server limits it. */
const MAX_IDS = 90;
const MAX_CHARACTERS = 1800;
const MAX_RUNS = 2000;

/** The ids in filters that are short enough: `id:a,b`, `id:c`. */
export function idFilters(ids: readonly string[]): string[] {
  const filters: string[] = [];
  let now: string[] = [];
  let length = 0;
  for (const id of ids.map(quoted)) {
    if (now.length === MAX_IDS || length + id.length + 1 > MAX_CHARACTERS) {
      filters.push(`id:${now.join(',')}`);
      [now, length] = [[], 0];
    }
    now.push(id);
    length += id.length + 1;
  }
  if (now.length > 0) filters.push(`id:${now.join(',')}`);
  return filters;
}

/** A CSV text without its first row, whose cells may have line breaks in quotes. */
export function withoutHead(text: string): string {
  let inQuotes = false;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '"') inQuotes = !inQuotes;
    else if (text[at] === '\n' && !inQuotes) return text.slice(at + 1);
  }
  return '';
}

export async function selectedCsv(runs: readonly RunKey[], params: Params): Promise<Blob> {
  if (runs.length > MAX_RUNS) throw new Error(`At most ${MAX_RUNS.toLocaleString('en-US')} selected runs are exported; to export more, filter and select all that match.`);
  const parts: string[] = [];
  for (const filter of idFilters(runs.map(({ id }) => id))) {
    const text = await (await get<Blob>('runs.csv', { ...params, filter })).text();
    parts.push(parts.length === 0 ? text : withoutHead(text));
  }
  return new Blob(parts, { type: 'text/csv' });
}
