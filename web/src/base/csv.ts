// Tables as CSV, as the API writes them.

import type { Value } from './api';

export type Cell = string | Value | undefined;

/** Text that a spreadsheet would run as a formula gets a leading apostrophe; some read signs in full width alike. */
const FORMULA = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

function cellText(value: Cell): string {
  if (value === null || value === undefined) return '';
  if (typeof value !== 'string') return String(value);
  const text = FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export const csvText = (rows: readonly (readonly Cell[])[]): string => rows.map((row) => `${row.map(cellText).join(',')}\n`).join('');

/** The rows of several panels as one table: it has each of their columns once, after the title of the panel. */
export function joinedRows(tables: readonly { title: string; rows: readonly Cell[][] }[]): Cell[][] {
  const head = [...new Set(tables.flatMap(({ rows }) => rows[0] ?? []))];
  return [
    ['panel', ...head],
    ...tables.flatMap(({ title, rows: [own = [], ...rows] }) => {
      const columns = head.map((name) => own.indexOf(name));
      return rows.map((row) => [title, ...columns.map((column) => (column < 0 ? null : row[column]))]);
    }),
  ];
}
