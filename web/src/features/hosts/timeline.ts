// Runs of a host in time: which row each bar is in, and where.

import type { HostRun } from '../../base/wire';

export interface Bar {
  run: HostRun;
  row: number;
  /** In percent of the range that is shown, as all places. */
  left: number;
  width: number;
  /** Where its name stands: in it, or beside it where it is shorter than its name; nowhere if there are too many runs. */
  name: 'in' | 'after' | 'before' | 'none';
  /** The bar and its name. */
  place: { left: number; width: number };
  end: number;
  /** It goes on beyond the range. */
  open: boolean;
}

/** Narrower than this, a bar could not be seen or pressed. */
const MIN_PERCENT = 0.4;
/** With more rows, names that are longer than their bars are left out. */
const MAX_ROWS = 20;

/** The bars of runs between two times, in as few rows as possible: those that overlap are below each other. `room`: of a name. */
export function bars(runs: readonly HostRun[], t0: number, t1: number, room: (run: HostRun) => number = () => 0): { bars: Bar[]; rows: number } {
  const named = packed(runs, t0, t1, room);
  return named.rows <= MAX_ROWS ? named : packed(runs, t0, t1, null);
}

function packed(runs: readonly HostRun[], t0: number, t1: number, room: ((run: HostRun) => number) | null): { bars: Bar[]; rows: number } {
  const span = Math.max(1, t1 - t0);
  const ends: number[] = [];
  const drawn: Bar[] = [];
  for (const run of [...runs].sort((a, b) => a.started_ms - b.started_ms)) {
    const end = run.state === 'running' ? t1 : run.last_ms;
    if (end < t0 || run.started_ms > t1) continue;
    const [from, to] = [Math.max(t0, run.started_ms), Math.min(t1, end)];
    const width = Math.max(MIN_PERCENT, ((to - from) / span) * 100);
    const left = Math.min(100 - width, ((from - t0) / span) * 100);
    const nameWidth = room?.(run) ?? 0;
    const name = nameWidth <= width ? (room ? 'in' : 'none') : left + width + nameWidth <= 100 ? 'after' : 'before';
    const both = name === 'in' || name === 'none' ? width : width + nameWidth;
    const box = { left: name === 'before' ? Math.max(0, left + width - both) : left, width: Math.min(100, both) };
    const free = ends.findIndex((end) => end <= box.left);
    const row = free < 0 ? ends.length : free;
    ends[row] = box.left + box.width;
    drawn.push({ run, row, left, width, name, place: box, end, open: run.state === 'running' });
  }
  return { bars: drawn, rows: ends.length };
}
