import { describe, expect, it } from 'vitest';
import { rangeOf, thresholdOf, yLabels, yTicks, type YAxis } from './yAxis';

const axis = (more: Partial<YAxis> = {}): YAxis => ({ scale: 'auto', outliersAside: false, unit: '', ...more });
const values = [1, 2, 3, 4, 5, 1000];
const range = (y: YAxis, of = values): [number, number] => rangeOf(y, Math.min(...of), Math.max(...of), () => of);

describe('the range of the y axis', () => {
  it('is 0 to 100 where that is asked for', () => {
    expect(range(axis({ scale: 'percent' }))).toEqual([0, 100]);
  });

  it('fits the values where it is linear, and begins at zero where it is automatic', () => {
    expect(range(axis({ scale: 'linear' }), [100, 200])).toEqual([95, 205]);
    expect(range(axis(), [100, 200])[0]).toBe(0);
    expect(range(axis({ scale: 'linear' }), [5, 5])).toEqual([4.75, 5.25]);
  });

  it('leaves outliers aside', () => {
    expect(range(axis({ scale: 'linear', outliersAside: true }))).toEqual([0.8, 5.2]);
    expect(range(axis({ outliersAside: true }))[1]).toBeLessThan(10);
  });

  it('is of positive values where it is logarithmic', () => {
    const [low, high] = range(axis({ scale: 'log' }), [-5, 0, 1, 1000]);
    expect(Math.log10(low)).toBeCloseTo(-0.15, 10);
    expect(Math.log10(high)).toBeCloseTo(3.15, 10);
    expect(rangeOf(axis({ scale: 'log' }), null, null, () => [])).toEqual([1, 10]);
  });
});

it('a logarithmic axis has powers of ten, and more ticks where those are few', () => {
  const log = axis({ scale: 'log' });
  expect(yTicks(log, 0.5, 2e6, 4)).toEqual([1, 100, 1e4, 1e6]);
  expect(yTicks(log, 0.9, 110, 6)).toEqual([1, 2, 5, 10, 20, 50, 100]);
  expect(yTicks(log, 3, 4, 5)).toEqual([3, 4]);
  expect(yLabels(log, [1, 100, 1e4])).toEqual(['1', '100', '10000']);
});

it('values of any size have a range and ticks', () => {
  const most = Number.MAX_VALUE;
  for (const [low, high] of [[-1e308, 1e308], [most, most], [-most, most], [0, most], [1e308, 1e308], [5e-324, 5e-324], [3e38, 3.4e38], [1e17, 1e17 + 16], [-1e17 - 16, -1e17], [1e300, 1e300 * (1 + 2e-16)]] as const) {
    for (const y of [axis({}), axis({ scale: 'linear' }), axis({ unit: '%' }), axis({ unit: 'B' })]) {
      const [from, to] = rangeOf(y, low, high, () => [low, high]);
      expect(Number.isFinite(to - from) && to >= from).toBe(true);
      expect(yTicks(y, from, to, 4).length).toBeLessThan(102);
    }
  }
  expect(yTicks(axis({}), -8e307, 8e307, 4)).toContain(0);
});

describe('a logarithmic axis with negatives', () => {
  const y = axis({ scale: 'symlog', threshold: 0.01 });

  it('is linear closer to zero than its smallest value, within six decades', () => {
    expect(thresholdOf([-50, 0, 0.03, null, undefined])).toBe(0.01);
    expect(thresholdOf([1e-30, 1000])).toBeCloseTo(0.001, 12);
    expect(thresholdOf([0, null])).toBe(1);
  });

  it('has room for all values, and ticks on both sides of zero', () => {
    const [low, high] = range(y, [-100, 0, 1000]);
    expect(low).toBeLessThan(-100);
    expect(high).toBeGreaterThan(1000);
    const ticks = yTicks(y, low, high, 8);
    expect(ticks).toContain(0);
    expect(ticks.some((tick) => tick < 0) && ticks.some((tick) => tick > 0)).toBe(true);
    expect(ticks).toEqual([...ticks].sort((a, b) => a - b));
    expect(ticks.length).toBeLessThanOrEqual(9);
    expect(rangeOf(y, null, null, () => [])).toEqual([-0.01, 0.01]);
  });
});
