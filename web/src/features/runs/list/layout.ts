// The widths of the table's columns, and where pinned ones stay.

import { own } from '../../../base/own';
import type { Column } from './columns';

export const BOX = 34;
const LAST = 100;

export interface Layout {
  box: number;
  last: number;
  widths: number[];
  /** Of pinned columns, the name among them, the distance from the left edge. */
  lefts: (number | null)[];
  total: number;
}

/**
 * What is left of the width goes to the name, unless the user chose its width. Where pinned columns would fill the table,
 * only the name stays.
 */
export function widthsOf(columns: readonly Column[], pinned: readonly string[], width: number, boxes: number, chosen: Readonly<Record<string, number>> = {}): Layout {
  const widths = columns.map((column) => own(chosen, column.name) ?? column.width);
  const isChosen = columns[0] !== undefined && own(chosen, columns[0].name) !== undefined;
  const before = boxes * BOX;
  const narrow = width < 700;
  if (narrow && columns.length > 1 && !isChosen) widths[0] = Math.min(widths[0]!, 200);
  const sum = widths.reduce((total, width) => total + width, before);
  if (!isChosen && sum < width) widths[0] = widths[0]! + width - sum;
  else if (!isChosen && columns.length === 1) widths[0] = Math.max(120, width - before);
  const lefts: (number | null)[] = [];
  let left = before;
  columns.forEach(({ name }, i) => {
    const stays = i === 0 || (pinned.includes(name) && (sum <= width || left + widths[i]! < width * 0.7));
    lefts.push(stays ? left : null);
    if (stays) left += widths[i]!;
  });
  return { box: BOX, last: LAST, widths, lefts, total: widths.reduce((total, width) => total + width, before) };
}
