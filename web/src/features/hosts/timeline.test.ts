import { describe, expect, it } from 'vitest';
import { bars } from './timeline';
import type { HostRun } from '../../base/wire';

const run = (id: string, started_ms: number, last_ms: number, state: HostRun['state'] = 'finished'): HostRun => ({
  id,
  entity: null,
  project: 'p',
  name: id,
  author: null,
  state,
  started_ms,
  last_ms,
  devices: null,
});

const rowsOf = (runs: HostRun[], t0 = 0, t1 = 100): Record<string, number> =>
  Object.fromEntries(bars(runs, t0, t1).bars.map((bar) => [bar.run.id, bar.row]));

describe('the timeline of a host', () => {
  it('puts runs that overlap below each other, and others side by side', () => {
    expect(rowsOf([run('c', 40, 60), run('a', 0, 30), run('b', 20, 50)])).toEqual({ a: 0, b: 1, c: 0 });
  });

  it('is clipped to the range', () => {
    const [bar] = bars([run('a', -50, 50)], 0, 100).bars;
    expect(bar).toMatchObject({ left: 0, width: 50, open: false });
    expect(bars([run('a', -50, -1), run('b', 101, 200)], 0, 100).bars).toEqual([]);
  });

  it('shows a running run up to now', () => {
    expect(bars([run('a', 90, 91, 'running')], 0, 100).bars[0]).toMatchObject({ left: 90, width: 10, open: true });
  });

  it('keeps short runs visible within the range', () => {
    const [bar] = bars([run('a', 100, 100)], 0, 100).bars;
    expect(bar!.width).toBeGreaterThan(0.3);
    expect(bar!.left + bar!.width).toBeLessThanOrEqual(100);
  });

  it('keeps room for the name of a run that is shorter than its name', () => {
    const short = [run('a', 0, 1), run('b', 5, 6), run('c', 30, 31), run('d', 99, 100)];
    const { bars: drawn, rows } = bars(short, 0, 100, () => 10);
    expect(drawn.map(({ row, name }) => [row, name])).toEqual([[0, 'after'], [1, 'after'], [0, 'after'], [0, 'before']]);
    expect(drawn[3]!.place).toEqual({ left: 89, width: 11 });
    expect(rows).toBe(2);
    expect(bars([run('a', 0, 50)], 0, 100, () => 10).bars[0]!.name).toBe('in');
  });

  it('leaves names out where they would need too many rows', () => {
    const many = Array.from({ length: 100 }, (_, i) => run(`r${i}`, i, i + 0.5));
    const { bars: drawn, rows } = bars(many, 0, 100, () => 90);
    expect(rows).toBe(1);
    expect(new Set(drawn.map(({ name }) => name))).toEqual(new Set(['none']));
  });

  it('has no row without runs', () => {
    expect(bars([], 0, 0)).toEqual({ bars: [], rows: 0 });
  });
});
