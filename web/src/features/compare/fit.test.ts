import { describe, expect, it } from 'vitest';
import { fitEnds, fitOf, fitText } from './fit';

describe('a fit', () => {
  it('is the line of least squares, with the share that it explains', () => {
    const fit = fitOf([0, 1, 2, 3].map((x) => ({ x, y: 2 * x + 1 })))!;
    expect([fit.slope, fit.intercept, fit.r2, fit.n]).toEqual([2, 1, 1, 4]);
    const noisy = fitOf([{ x: 0, y: 0 }, { x: 1, y: 2 }, { x: 2, y: 1 }])!;
    expect(noisy.slope).toBeCloseTo(0.5);
    expect(noisy.r2).toBeCloseTo(0.25);
    expect(fitText(noisy)).toBe('r² 0.25, n 3');
  });

  it('leaves out what is not finite, and is not made of too few points', () => {
    expect(fitOf([{ x: 0, y: NaN }, { x: 1, y: 1 }, { x: 2, y: 2 }])).toBeNull();
    expect(fitOf([0, 1, 2].map((y) => ({ x: 1, y })))).toBeNull();
    expect(fitOf([0, 1, 2].map((x) => ({ x, y: 1 })))).toBeNull();
  });

  it('is drawn within the axes', () => {
    expect(fitEnds({ slope: 2, intercept: -0.5, r2: 1, n: 3 })).toEqual([{ x: 0.25, y: 0 }, { x: 0.75, y: 1 }]);
    expect(fitEnds({ slope: -1, intercept: 1, r2: 1, n: 3 })).toEqual([{ x: 0, y: 1 }, { x: 1, y: 0 }]);
    expect(fitEnds({ slope: 0, intercept: 2, r2: 0, n: 3 })).toEqual([{ x: 0, y: 2 }, { x: 1, y: 2 }]);
    expect(fitEnds({ slope: 1, intercept: 5, r2: 0, n: 3 })).toBeNull();
  });
});
