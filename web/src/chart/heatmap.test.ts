import { describe, expect, it } from 'vitest';
import type { Line } from './points';
import { heatColor, heatmap, ordered } from './heatmap';
import type { Axis } from './xAxis';

const axis: Axis = { kind: 'wall' };

const line = (label: string, x: number[], y: (number | null)[], n: number[] | null = null): Line => ({
  id: label,
  label,
  slot: 0,
  points: { x, y, low: null, high: null, n },
});

describe('a heatmap', () => {
  it('has columns of equal width along a logarithmic axis, filled up to the last point', () => {
    const map = heatmap([line('a', [1, 10, 100], [1, 2, 3])], { kind: 'step', log: true }, { min: 1, max: 10_000 }, 8, '', false);
    expect([...map.values]).toEqual([1, 1, 2, 2, 3, NaN, NaN, NaN]);
  });

  it('has the mean of the points in each column, buckets by their samples', () => {
    const map = heatmap([line('a', [0, 1, 10, 11], [2, 4, 6, 9], [1, 1, 1, 2])], axis, { min: 0, max: 20 }, 2, 'W', false);
    expect([...map.values]).toEqual([3, 8]);
    expect([map.low, map.high]).toEqual([3, 8]);
  });

  it('carries a value on until the next is due, and leaves gaps', () => {
    const map = heatmap([line('a', [0, 10, 20, 80], [1, 2, 3, 4])], axis, { min: 0, max: 90 }, 9, '', false);
    expect([...map.values]).toEqual([1, 2, 3, 3, 3, NaN, NaN, NaN, 4]);
  });

  it('has the colours of 0 to 100 for percent', () => {
    const map = heatmap([line('a', [0], [55])], axis, { min: 0, max: 1 }, 1, '%', false);
    expect([map.low, map.high]).toEqual([0, 100]);
    expect(heatmap([line('a', [], [])], axis, { min: 0, max: 1 }, 1, 'W', false)).toMatchObject({ low: 0, high: 1 });
  });

  it('is sorted by distance from the others', () => {
    const rows = [90, 91, 12, 92].map((value) => line(String(value), [0], [value]));
    expect(ordered(rows, 'outlier')[0]!.label).toBe('12');
    expect(ordered(rows, 'name')).toEqual(rows);
  });
});

it('colours go from dark to bright, and stay at the ends', () => {
  const brightness = [0, 25, 50, 75, 100].map((value) => heatColor(value, 0, 100).reduce((sum, part) => sum + part));
  expect(brightness).toEqual([...brightness].sort((a, b) => a - b));
  expect(heatColor(-5, 0, 100)).toEqual(heatColor(0, 0, 100));
  expect(heatColor(500, 0, 100)).toEqual([253, 231, 37]);
});
