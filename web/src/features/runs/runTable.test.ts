import { expect, it } from 'vitest';
import type { RunRow } from '../../base/api';
import { durationOf, latest } from './runTable';

function row(id: string, more: Partial<RunRow> = {}): RunRow {
  const ending = { state: 'finished', exit_code: 0, signal: null, out_of_memory: false } as const;
  return {
    id,
    verdict: null,
    starred: false,
    deleted_ms: null,
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
    stop_requested_ms: null,
    entity: null,
    author: null,
    service_account: null,
    may: null,
    ...more,
  };
}

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
