import { describe, expect, it } from 'vitest';
import { align, append, finiteText, fromMetrics, longestStep, seriesId, spread, withNotFinite, type Line, type Points } from './points';
import type { Metrics } from '../base/wire';

const points = (x: number[], y: (number | null)[]): Points => ({ x, y, low: null, high: null, n: null });

const line = (of: Points): Line => ({ id: '', label: '', slot: 0, points: of });

function answer(parts: Partial<Metrics>): Metrics {
  return { run: 'abc', t0: 0, t1: 1000, resolution: 'raw', bucket_ms: null, cursor: '', groups: [], problems: [], ...parts };
}

describe('points of an answer', () => {
  it('are the samples, by host and key', () => {
    const pointsOf = fromMetrics(
      answer({
        groups: [
          { host: 'a', role: 'monitor', t: [0, 1000], n: null, series: { cpu: [1, null] }, min: null, max: null },
        ],
      }),
    );
    expect(pointsOf.get(seriesId({ host: 'a', role: 'monitor', key: 'cpu' }))).toEqual(points([0, 1000], [1, null]));
  });

  it('stand in the middle of their buckets, and never after the last sample', () => {
    const group = { host: 'a', role: 'monitor', t: [0, 600], n: [3, 2] };
    const pointsOf = fromMetrics(
      answer({
        resolution: 'buckets',
        bucket_ms: 600,
        t1: 800,
        groups: [{ ...group, series: { cpu: [2, 5] }, min: { cpu: [1, 4] }, max: { cpu: [3, 6] } }],
      }),
    );
    expect(pointsOf.get(seriesId({ host: 'a', role: 'monitor', key: 'cpu' }))).toEqual({
      x: [300, 800],
      y: [2, 5],
      low: [1, 4],
      high: [3, 6],
      n: [3, 2],
    });
  });
});

describe('append', () => {
  it('adds what is new and passes over what is known', () => {
    const known = points([0, 1000], [1, 2]);
    expect(append(known, 1000, 9)).toBe(false);
    expect(append(known, 2000, null)).toBe(true);
    expect(known).toEqual(points([0, 1000, 2000], [1, 2, null]));
  });

  it('keeps the band as long as the line', () => {
    const bucketed = { x: [0], y: [2], low: [1], high: [3], n: [4] };
    append(bucketed, 10, 5);
    expect(bucketed).toEqual({ x: [0, 10], y: [2, 5], low: [1, 5], high: [3, 5], n: [4, 1] });
  });
});

describe('align', () => {
  it('tells a gap (null) from a moment of another series (undefined)', () => {
    const { x, columns } = align([
      { x: [0, 10, 20, 30], columns: [[1, null, 3, 4]] },
      { x: [5, 25], columns: [[7, 8]] },
    ]);
    expect(x).toEqual([0, 5, 10, 20, 25, 30]);
    expect(columns).toEqual([
      [1, undefined, null, 3, undefined, 4],
      [undefined, 7, undefined, undefined, 8, undefined],
    ]);
  });

  it('breaks a line where nothing was read for long', () => {
    const { x, columns } = align([{ x: [0, 1, 2, 3, 100, 101], columns: [[1, 1, 1, 1, 2, 2]] }]);
    expect(x).toEqual([0, 1, 2, 3, 51.5, 100, 101]);
    expect(columns[0]![4]).toBeNull();
  });

  it('does not break the line of a source that is read seldom', () => {
    expect(longestStep([0, 10, 20, 30])).toBe(40);
    expect(longestStep([0, 500])).toBe(Infinity);
  });
});

it('spread has lowest, mean and highest of those that have a value', () => {
  const band = spread([
    line(points([0, 1], [1, null])),
    line(points([0, 1, 2], [3, 5, null])),
  ]);
  expect(band).toEqual({ x: [0, 1, 2], y: [2, 5, null], low: [1, 5, null], high: [3, 5, null], n: null });
  const bucketed = { x: [0], y: [5], low: [2], high: [9], n: [3] };
  const both = spread([
    line(bucketed),
    line(points([0], [3])),
  ]);
  expect(both).toEqual({ x: [0], y: [4], low: [2], high: [9], n: null });
});

describe('values that are not finite', () => {
  const points = (y: (number | null)[], n: number[] | null = null): Points => ({ x: y.map((_, i) => i), y, low: null, high: null, n });
  const line = (of: Points): Line => ({ id: '', label: '', slot: 0, ...withNotFinite(of) });

  it('have their places, and are counted', () => {
    expect(line(points([1, null, 2, null])).notFinite).toEqual([1, 3]);
    expect(finiteText([line(points([1, null, 2, null])), line(points([1]))])).toBe('3 of 5 finite');
    expect(finiteText([line(points([1, null], [4, 0]))])).toBe('not finite at 1 of 2 points');
    expect(finiteText([line(points([1, 2]))])).toBe('');
    expect(finiteText([{ id: '', label: '', slot: 0, points: points([null]) }])).toBe('');
  });
});

it('a line over a logarithmic axis is not broken where its points are further apart', () => {
  const x = [...Array.from({ length: 50 }, (_, i) => i + 1), 100, 1000, 10_000];
  const series = [{ x, columns: [x] }];
  expect(align(series).columns[0]).toContain(null);
  expect(align(series, true).columns[0]).not.toContain(null);
});
