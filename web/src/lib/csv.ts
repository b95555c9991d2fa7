// Tables as CSV, as the API writes them.

import type { Value } from './api';

export type Cell = string | Value | undefined;

/** Text that a spreadsheet would run as a formula gets a leading apostrophe. */
const FORMULA = /^[=+\-@\t\r]/;

function cellText(value: Cell): string {
  if (value === null || value === undefined) return '';
  if (typeof value !== 'string') return String(value);
  const text = FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export const csvText = (rows: readonly (readonly Cell[])[]): string => rows.map((row) => `${row.map(cellText).join(',')}\n`).join('');
