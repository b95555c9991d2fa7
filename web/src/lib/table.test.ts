import { describe, expect, it } from 'vitest';
import type { RunRow } from './api';
import { durationOf, filtered, latest, sorted } from './table';

function row(id: string, more: Partial<RunRow> = {}): RunRow {
  const ending = { state: 'finished', exit_code: 0, signal: null, out_of_memory: false } as const;
  return {
    id,
    project: 'digits',
    name: id,
    group: null,
    job_type: null,
    tags: [],
    ...ending,
    started_ms: 0,
    ended_ms: 1000,
    duration_ms: 1000,
    hosts: [{ name: 'node1', ...ending, started_ms: 0, last_ms: 1000, interval_s: 1, monitors: 1 }],
    summary: {},
    last: {},
    ...more,
  };
}
const ids = (runs: RunRow[]): string[] => runs.map((run) => run.id);

it('latest values are means over hosts and GPUs', () => {
  const run = row('a', {
    last: { a: { cpu: 10, 'gpu.0.gpu': 90, 'gpu.1.gpu': 70 }, b: { cpu: 30, memory_percent: null, 'gpu.0.gpu': 50 } },
  });
  expect(latest(run)).toEqual({ cpu: 20, memory: null, gpu: 70, gpus: 3 });
});

it('a running run grows older with the clock', () => {
  expect(durationOf(row('a', { ended_ms: null, started_ms: 100, duration_ms: 5 }), 1100)).toBe(1000);
  expect(durationOf(row('a'), 99_999)).toBe(1000);
});

describe('sorting', () => {
  const runs = [
    row('slow', { duration_ms: 9000, last: { n: { cpu: 5 } } }),
    row('quick', { duration_ms: 10 }),
    row('live', { state: 'running', last: { n: { cpu: 50 } } }),
  ];
  it('is by value', () => expect(ids(sorted(runs, 'duration', false, 0))).toEqual(['quick', 'live', 'slow']));
  it('keeps those without a value last', () => {
    expect(ids(sorted(runs, 'cpu', false, 0))).toEqual(['slow', 'live', 'quick']);
    expect(ids(sorted(runs, 'cpu', true, 0))).toEqual(['live', 'slow', 'quick']);
  });
  it('puts what is running first among states', () =>
    expect(ids(sorted(runs, 'state', false, 0))).toEqual(['live', 'slow', 'quick']));
});

it('filtering wants every word', () => {
  const runs = [row('a', { tags: ['baseline'] }), row('b', { state: 'crashed', signal: 9, out_of_memory: true })];
  expect(ids(filtered(runs, 'BASE node1'))).toEqual(['a']);
  expect(ids(filtered(runs, 'crashed memory'))).toEqual(['b']);
  expect(ids(filtered(runs, 'baseline crashed'))).toEqual([]);
  expect(ids(filtered(runs, ''))).toEqual(['a', 'b']);
});
