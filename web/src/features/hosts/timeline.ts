// Runs of a host in time: which row each bar is in, and where.

import type { HostRun } from '../../base/wire';


export interface Bar {
  run: HostRun;
  row: number;
  /** In percent of the range that is shown. */
  left: number;
  width: number;
  end: number;
  /** It goes on beyond the range. */
  open: boolean;
}

/** Narrower than this, a bar could not be seen or pressed. */
const MIN_PERCENT = 0.4;

/** The bars of runs between two times, in as few rows as possible: those that overlap are below each other. */
export function bars(runs: readonly HostRun[], t0: number, t1: number): { bars: Bar[]; rows: number } {
  const span = Math.max(1, t1 - t0);
  const ends: number[] = [];
  const found: Bar[] = [];
  for (const run of [...runs].sort((a, b) => a.started_ms - b.started_ms)) {
    const end = run.state === 'running' ? t1 : run.last_ms;
    if (end < t0 || run.started_ms > t1) continue;
    const [from, to] = [Math.max(t0, run.started_ms), Math.min(t1, end)];
    const width = Math.max(MIN_PERCENT, ((to - from) / span) * 100);
    const left = Math.min(100 - width, ((from - t0) / span) * 100);
    const free = ends.findIndex((taken) => taken <= left);
    const row = free < 0 ? ends.length : free;
    ends[row] = left + width;
    found.push({ run, row, left, width, end, open: run.state === 'running' });
  }
  return { bars: found, rows: ends.length };
}
