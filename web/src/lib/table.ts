// The runs table: what its columns show, and how they sort and filter.

import type { RunRow, Value } from './api';
import { why } from './words';

export type Column = 'state' | 'run' | 'started' | 'duration' | 'host' | 'cpu' | 'memory' | 'gpu';

/** The newest values of a run: means over its hosts, and over their GPUs. */
export interface Latest {
  cpu: Value;
  memory: Value;
  gpu: Value;
  gpus: number;
}

export function latest(run: RunRow): Latest {
  const hosts = Object.values(run.last);
  const gpus = hosts.flatMap((values) => matching(values, /^gpu\.\d+\.gpu$/));
  return {
    cpu: mean(hosts.map((values) => values['cpu'])),
    memory: mean(hosts.map((values) => values['memory_percent'])),
    gpu: mean(gpus),
    gpus: gpus.length,
  };
}

function matching(values: Record<string, Value>, pattern: RegExp): Value[] {
  return Object.entries(values)
    .filter(([key]) => pattern.test(key))
    .map(([, value]) => value);
}

function mean(values: (Value | undefined)[]): Value {
  const known = values.filter((value): value is number => typeof value === 'number');
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
}

export const hostText = (run: RunRow): string =>
  run.hosts.length === 1 ? run.hosts[0]!.name : `${run.hosts.length} hosts`;

/** How long a run took, or has taken by now. */
export const durationOf = (run: RunRow, now: number): number =>
  run.ended_ms === null ? Math.max(run.duration_ms, now - run.started_ms) : run.duration_ms;

const ORDER = ['running', 'crashed', 'failed', 'lost', 'stopped', 'finished'];

function sortValue(run: RunRow, column: Column, now: number): number | string | null {
  switch (column) {
    case 'state':
      return ORDER.indexOf(run.state);
    case 'run':
      return run.name.toLowerCase();
    case 'started':
      return run.started_ms;
    case 'duration':
      return durationOf(run, now);
    case 'host':
      return hostText(run).toLowerCase();
    default:
      return latest(run)[column];
  }
}

/** Sorted by a column; what has no value there comes last either way. Equal ones stay as they were. */
export function sorted(runs: readonly RunRow[], column: Column, descending: boolean, now: number): RunRow[] {
  const sign = descending ? -1 : 1;
  return runs
    .map((run) => ({ run, value: sortValue(run, column, now) }))
    .sort((a, b) => {
      if (a.value === b.value) return 0;
      if (a.value === null) return 1;
      if (b.value === null) return -1;
      return (a.value < b.value ? -1 : 1) * sign;
    })
    .map(({ run }) => run);
}

/** Those that have all the words somewhere: name, id, project, tags, state, host, group. */
export function filtered(runs: readonly RunRow[], words: string): RunRow[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  return runs.filter((run) => {
    const hosts = run.hosts.map((host) => host.name);
    const text = [run.id, run.name, run.project, run.state, why(run), run.group, run.job_type, ...run.tags, ...hosts]
      .join(' ')
      .toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
}
