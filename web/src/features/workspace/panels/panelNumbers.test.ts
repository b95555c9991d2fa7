import { describe, expect, it } from 'vitest';
import type { Points } from '../../../chart/points';
import { acrossOf, bins, pairs, percentiles, statisticOf, valuesOf } from './panelNumbers';

const points = (x: number[], y: (number | null)[], n: number[] | null = null): Points => ({ x, y, low: null, high: null, n });

it('statistics count a bucket as the samples in it, and no gaps', () => {
  const curve = points([0, 1, 2, 3], [1, null, 4, null], [3, 0, 1, 0]);
  expect((['last', 'min', 'mean', 'max'] as const).map((statistic) => statisticOf(curve, statistic))).toEqual([4, 1, 7 / 4, 4]);
  expect(statisticOf(points([], []), 'mean')).toBeNull();
});

it('one number of several lines is their extreme or mean', () => {
  expect([acrossOf([1, 2, 6], 'min'), acrossOf([1, 2, 6], 'max'), acrossOf([1, 2, 6], 'last'), acrossOf([], 'mean')]).toEqual([1, 6, 3, null]);
});

it('percentiles are of the values that the lines have at each x', () => {
  const [median, top] = percentiles([points([0, 1], [1, 10]), points([0, 1], [2, 20]), points([1], [40])], [50, 100]);
  expect([median!.x, median!.y, top!.y]).toEqual([[0, 1], [1.5, 20], [2, 40]]);
});

it('pairs are of the values at the same x', () => {
  expect(pairs(points([0, 1, 2], [5, 6, 7]), points([1, 2], [60, null]))).toEqual([{ x: 6, y: 60 }]);
});

describe('bins', () => {
  it('cover all values, the highest in the last', () => {
    const histogram = bins([{ values: [0, 1, 2, 10], weights: null }, { values: [10], weights: [5] }])!;
    expect([histogram.min, histogram.width]).toEqual([0, 2]);
    expect(histogram.counts).toEqual([
      [2, 1, 0, 0, 1],
      [0, 0, 0, 0, 5],
    ]);
  });

  it('are one where all values are the same, and none without values', () => {
    expect(bins([{ values: [4, 4], weights: null }])).toEqual({ min: 2, width: 4, counts: [[2]] });
    expect(bins([{ values: [], weights: null }])).toBeNull();
  });

  it('leave gaps out', () => {
    expect(valuesOf(points([0, 1, 2], [1, null, 3], [1, 0, 2]))).toEqual({ values: [1, 3], weights: [1, 2] });
  });
});
