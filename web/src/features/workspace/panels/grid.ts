// The grid of panels: its tracks at a width, and where a dragged panel would be dropped.

import { COLUMNS, type Place } from './layout';

/** As in the styles of the grid. */
export const ROW_HEIGHT = 52;
export const ROW_GAP = 10;
const WIDE = 860;
const MEDIUM = 520;

/** Tracks of the grid at a width: on a phone, panels are below each other. */
export const tracksOf = (width: number): number => (width >= WIDE ? COLUMNS : width >= MEDIUM ? COLUMNS / 2 : 1);

/** Tracks that a panel takes: in half as many tracks, it has a third, half or all of them. */
export function spanOf(columns: number, tracks: number): number {
  if (tracks === COLUMNS) return columns;
  return tracks === 1 ? 1 : columns <= 2 ? 2 : columns <= 7 ? 3 : tracks;
}

/** Where a panel would be dropped at a place of the window: before or after the panel there, or at the end of the section. */
export function dropPlace(x: number, y: number, dragged: string): Place | null {
  const under = document.elementFromPoint(x, y);
  const grid = under?.closest<HTMLElement>('[data-section]');
  const section = grid?.dataset.section;
  if (!grid || section === undefined) return null;
  const ids = [...new Set([...grid.querySelectorAll<HTMLElement>('[data-panel]')].map(({ dataset }) => dataset.panel!))].filter((id) => id !== dragged);
  const panel = under!.closest<HTMLElement>('[data-panel]');
  const index = ids.indexOf(panel?.dataset.panel ?? '');
  if (!panel) return { section, index: ids.length };
  if (index < 0) return null; // over itself
  const { left, width } = panel.getBoundingClientRect();
  return { section, index: index + Number(x > left + width / 2) };
}
