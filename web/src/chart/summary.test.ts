import { describe, expect, it } from 'vitest';
import type { Points } from './points';
import { outlierScores, quantile, summary, withoutOutliers } from './summary';

const points = (y: Points['y'], more: Partial<Points> = {}): Points => ({
  x: y.map((_, i) => i),
  y,
  low: null,
  high: null,
  n: null,
  ...more,
});
const all = { min: -Infinity, max: Infinity };

describe('summary', () => {
  it('has the last value, the extremes and the mean, without gaps', () => {
    expect(summary(points([3, null, 1, 8]), all)).toEqual({ last: 8, min: 1, mean: 4, max: 8 });
  });

  it('counts the samples of a bucket, and its extremes', () => {
    const buckets = points([2, 8], { low: [1, 5], high: [3, 9], n: [3, 1] });
    expect(summary(buckets, all)).toEqual({ last: 8, min: 1, mean: 3.5, max: 9 });
  });

  it('is of the shown range only', () => {
    expect(summary(points([1, 2, 3, 4]), { min: 1, max: 2 })).toEqual({ last: 3, min: 2, mean: 2.5, max: 3 });
  });

  it('knows nothing of no values', () => {
    expect(summary(points([null]), all)).toEqual({ last: null, min: null, mean: null, max: null });
  });
});

describe('withoutOutliers', () => {
  it('leaves out what is far from the quartiles', () => {
    expect(withoutOutliers([1, 2, 3, 4, 5, 1000])).toEqual([1, 5]);
    expect(withoutOutliers([-900, 1, 2, 3, 4, 5])).toEqual([1, 5]);
  });

  it('keeps everything where nothing is far, or half of the values are equal', () => {
    expect(withoutOutliers([1, 2, 3, 4])).toEqual([1, 4]);
    expect(withoutOutliers([5, 5, 5, 5, 9])).toEqual([5, 9]);
    expect(withoutOutliers([])).toBeNull();
  });
});

it('quantiles are interpolated linearly', () => {
  expect(quantile([1, 2, 3], 0.75)).toBe(2.5);
  expect(quantile([4], 0.5)).toBe(4);
});

it('the device that differs from the others has the highest score', () => {
  const line = (value: number) => ({ id: '', label: '', slot: 0, points: points([value, value, value]) });
  const scores = outlierScores([line(90), line(91), line(92), line(40), line(93)]);
  expect(scores.indexOf(Math.max(...scores))).toBe(3);
  expect(scores[3]).toBeCloseTo(51 / 1.4826, 10);
  expect(outlierScores([line(5), line(5)])).toEqual([0, 0]);
  expect(outlierScores([{ id: '', label: '', slot: 0, points: points([null]) }])).toEqual([0]);
});
