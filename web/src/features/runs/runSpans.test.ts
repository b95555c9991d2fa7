import { describe, expect, it } from 'vitest';
import type { Host, RunEvent } from '../../base/api';
import { runSpans } from './runSpans';
import type { Rank } from '../../base/wire';

const host = (name: string, started_ms: number, last_ms: number): Host =>
  ({ name, started_ms, last_ms, state: 'finished', interval_s: 1, monitors: 1, exit_code: 0, signal: null, out_of_memory: null }) as Host;
const event = (name: string, time_ms: number, more: Partial<RunEvent> = {}): RunEvent =>
  ({ name, time_ms, level: 'warning', text: name, host: 'a', rank: null, data: {}, author: null, service_account: null, ...more }) as RunEvent;
const rank = (number: number, ended_ms: number | null, more: Partial<Rank> = {}): Rank =>
  ({ host: 'a', pid: 7, rank: number, ended_ms, exit_code: 0, signal: null, out_of_memory: null, ...more }) as Rank;
const run = { started_ms: 0, ended_ms: 100_000, hosts: [host('a', 0, 100_000), host('b', 50_000, 75_000)], ranks: [] as Rank[], events: [] as RunEvent[] };

describe('the hosts of a run in time', () => {
  it('have a bar from their first to their last sample', () => {
    const { hosts, start, end } = runSpans(run, 0);
    expect([start, end]).toEqual([0, 100_000]);
    expect(hosts.map(({ bar }) => [bar.left, bar.width])).toEqual([
      [0, 100],
      [50, 25],
    ]);
  });

  it('show where a monitor was restarted, and which processes did not end normally', () => {
    const events = [event('gap', 40_000, { data: { since: 20_000 } }), event('alert', 60_000, { level: 'error', text: 'loss is NaN' })];
    const ranks = [rank(0, 90_000), rank(1, 50_000, { exit_code: null, signal: 9, out_of_memory: true }), rank(2, null)];
    const spans = runSpans({ ...run, events, ranks }, 0);
    expect(spans.hosts[0]!.gaps).toEqual([{ left: 20, width: 20, text: 'gap' }]);
    expect(spans.hosts[0]!.ends).toEqual([{ left: 50, level: 'error', text: 'rank 1: SIGKILL, out of memory' }]);
    const both = runSpans({ ...run, ranks: [rank(0, 50_000, { exit_code: 1 }), rank(1, 50_010, { exit_code: 1 })] }, 0);
    expect(both.hosts[0]!.ends.map(({ text }) => text)).toEqual(['2 processes: exit code 1']);
    expect(spans.hosts[1]!.gaps).toEqual([]);
    expect(spans.events).toEqual([{ left: 60, level: 'error', text: 'loss is NaN' }]);
  });

  it('end at the last sample of a run that does not end, and are not more than fit', () => {
    const many = { ...run, ended_ms: null, hosts: Array.from({ length: 40 }, (_, i) => host(`n${i}`, 0, 200_000)) };
    const spans = runSpans(many, 210_000);
    expect([spans.end, spans.hosts.length, spans.more]).toEqual([210_000, 32, 8]);
    expect(runSpans({ ...many, ended_ms: null, hosts: [] }, 5_000).end).toBe(5_000);
  });
});
