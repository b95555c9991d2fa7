// The runs table: what its columns show.

import type { RunRow, Value } from '../../base/api';

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
  const numbers = values.filter((value): value is number => typeof value === 'number');
  return numbers.length ? numbers.reduce((sum, value) => sum + value, 0) / numbers.length : null;
}

export const hostText = (run: RunRow): string =>
  run.hosts.length === 1 ? run.hosts[0]!.name : `${run.hosts.length} hosts`;

/** How long a run took, or has taken by now. */
export const durationOf = (run: RunRow, now: number): number =>
  run.ended_ms === null ? Math.max(run.duration_ms, now - run.started_ms) : run.duration_ms;
