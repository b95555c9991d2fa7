// Logged values that are not numbers, as rows of a table.

import { processLabel } from '../../../chart/loggedPoints';
import type { LoggedOther } from '../../../base/wire';

export interface OtherRow {
  id: string;
  step: number;
  t: number;
  process: string;
  /** By name. */
  texts: Map<string, string>;
}

/** Media of W&B's client are kept as it sent them too; they have a place of their own on the page. */
const isMedia = (value: LoggedOther['value']): boolean => typeof value === 'object' && value !== null && '_type' in value;

/** Rows of the same step and process, the newest first. Of several values of a name, the last one counts. */
export function otherRows(others: readonly LoggedOther[]): OtherRow[] {
  const rows = new Map<string, OtherRow>();
  for (const other of others) {
    if (isMedia(other.value)) continue;
    const process = processLabel(other);
    const id = `${other.step} ${process}`;
    const row = rows.get(id) ?? { id, step: other.step, t: other.time_ms, process, texts: new Map<string, string>() };
    row.texts.set(other.key, typeof other.value === 'string' ? other.value : JSON.stringify(other.value));
    rows.set(id, row);
  }
  return [...rows.values()].sort((a, b) => b.step - a.step || a.process.localeCompare(b.process));
}
