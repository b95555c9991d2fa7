import { describe, expect, it } from 'vitest';
import type { LoggedPoints } from '../../../chart/loggedPoints';
import { stepsIn, widened } from './loggedZoom.svelte';

const points: LoggedPoints = { x: [0, 100, 200, 300, 400], y: [1, 2, 3, 4, 5], t: [10, 20, 30, 40, 50], low: null, high: null, n: [100, 100, 100, 100, 100] };

describe('the steps of a zoom', () => {
  it('are those of the points in it, with one more at both ends', () => {
    expect(stepsIn([points], ({ t }, i) => t[i]! >= 25 && t[i]! <= 30)).toEqual({ min: 100, max: 300 });
    expect(stepsIn([points], () => true)).toEqual({ min: 0, max: 400 });
  });

  it('are none without points', () => {
    expect(stepsIn([points], () => false)).toBeNull();
    expect(stepsIn([], () => true)).toBeNull();
  });

  it('are whole, and somewhat more', () => {
    expect(widened({ min: 100.5, max: 200.5 })).toEqual({ min: 95, max: 206 });
    expect(widened({ min: 3, max: 4 })).toEqual({ min: 2, max: 5 });
  });
});
