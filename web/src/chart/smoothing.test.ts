import { describe, expect, it } from 'vitest';
import { smoothed } from './smoothing';

describe('exponential average', () => {
  it('keeps e^(−distance ÷ width) of the level', () => {
    const kept = Math.exp(-1);
    expect(smoothed([0, 10], [0, 1], { kind: 'ema', width: 10 })).toEqual([0, 1 - kept]);
    const twice = 1 - kept;
    expect(smoothed([0, 10, 20], [0, 1, 0], { kind: 'ema', width: 10 })).toEqual([0, twice, kept * twice]);
  });

  it('depends on time, not on the number of points: a constant stays, a long pause forgets', () => {
    expect(smoothed([0, 1, 50], [7, 7, 7], { kind: 'ema', width: 5 })).toEqual([7, 7, 7]);
    expect(smoothed([0, 1e9], [100, 3], { kind: 'ema', width: 5 })).toEqual([100, 3]);
    // Two steps of 5 keep as much as one of 10.
    const once = smoothed([0, 10], [0, 1], { kind: 'ema', width: 8 })[1]!;
    const twice = smoothed([0, 5, 10], [0, 1, 1], { kind: 'ema', width: 8 })[2]!;
    expect(twice).toBeCloseTo(once, 12);
  });

  it('starts at the first value and leaves gaps as gaps', () => {
    expect(smoothed([0, 1, 2], [null, 4, null], { kind: 'ema', width: 5 })).toEqual([null, 4, null]);
  });
});

describe('running average', () => {
  it('is the mean of the values at most half a window away', () => {
    expect(smoothed([0, 1, 2, 3, 10], [0, 3, 6, 9, 1], { kind: 'mean', width: 2 })).toEqual([1.5, 3, 6, 7.5, 1]);
  });

  it('leaves out gaps', () => {
    expect(smoothed([0, 1, 2], [2, null, 4], { kind: 'mean', width: 4 })).toEqual([3, null, 3]);
  });
});

describe('gaussian', () => {
  it('weighs values by e^(−½ (distance ÷ σ)²), up to 3 σ', () => {
    const near = Math.exp(-0.5);
    expect(smoothed([0, 1], [0, 1], { kind: 'gaussian', width: 1 })).toEqual([near / (1 + near), 1 / (1 + near)]);
    expect(smoothed([0, 4], [0, 1], { kind: 'gaussian', width: 1 })).toEqual([0, 1]);
  });
});

it('of no width changes nothing', () => {
  expect(smoothed([0, 1], [5, 6], { kind: 'gaussian', width: 0 })).toEqual([5, 6]);
});
