import { describe, expect, it } from 'vitest';
import { formatTicks, formatValue, niceCeil, valueRange, valueTicks } from './units';

const MIB = 1024 ** 2;

describe('formatValue', () => {
  it.each([
    [98.765, '%', '98.8%'],
    [0.0345, '%', '0.035%'],
    [0, '%', '0%'],
    [40_000, 'MiB', '39.1 GiB'],
    [512, 'MiB', '512 MiB'],
    [0.004, 'MiB/s', '4.1 KiB/s'],
    [0, 'MiB/s', '0 MiB/s'],
    [214.6, 'GiB', '215 GiB'],
    [3 * MIB, 'bytes', '3 MiB'],
    [1980, 'MHz', '1.98 GHz'],
    [650, 'W', '650 W'],
    [0.31, 'ms', '310 µs'],
    [65.2, '°C', '65.2 °C'],
    [5400, 's', '1.5 h'],
    [38, '1', '38'],
    [12_500, '1', '12.5k'],
    [1_250, '1', '1250'],
    [44.8, '1/s', '44.8/s'],
    [1.5, 'furlong', '1.5 furlong'],
    [0.5, '', '0.5'],
    [1e-9, '', '1e-9'],
    [null, '%', '–'],
    [Number.NaN, 'W', '–'],
  ])('%s %s is %s', (value, unit, text) => {
    expect(formatValue(value, unit)).toBe(text);
  });
});

describe('ticks of a value axis', () => {
  it('share one unit and as many places as they need', () => {
    expect(formatTicks([0, 20, 40], '%')).toEqual(['0%', '20%', '40%']);
    expect(formatTicks([0, 512, 1024], 'MiB')).toEqual(['0 GiB', '0.5 GiB', '1.0 GiB']);
    expect(formatTicks([0, 0.025, 0.05], '%')).toEqual(['0%', '0.025%', '0.050%']);
    expect(formatTicks([], '%')).toEqual([]);
  });

  it('are round in the unit that is shown', () => {
    expect(valueTicks(0, 100, 4, '%')).toEqual([0, 25, 50, 75, 100]);
    expect(valueTicks(0, 2048, 4, 'MiB')).toEqual([0, 512, 1024, 1536, 2048]);
    expect(valueTicks(5, 5, 4, 'W')).toEqual([5]);
  });

  it.each([
    [0, 0],
    [0.7, 1],
    [1, 1],
    [21, 25],
    [101, 200],
  ])('niceCeil(%s) is %s', (value, nice) => {
    expect(niceCeil(value)).toBeCloseTo(nice, 9);
  });
});

describe('the range of a value axis', () => {
  it.each<[number | null, number | null, string, [number, number]]>([
    [3, 97, '%', [0, 100]],
    [120, 390, '%', [0, 400]],
    [0.01, 0.04, '%', [0, 0.05]],
    [0, 0, 'MiB/s', [0, 1]],
    [null, null, 'W', [0, 1]],
  ])('%s to %s %s is %j', (low, high, unit, range) => {
    const [min, max] = valueRange(low, high, unit);
    expect(min).toBeCloseTo(range[0], 9);
    expect(max).toBeCloseTo(range[1], 9);
  });

  it('shows what moves where zero is far away', () => {
    const [min, max] = valueRange(60, 70, '°C');
    expect(min).toBeGreaterThan(55);
    expect(max).toBeLessThan(75);
  });

  it('has room for a value that never moves', () => {
    const [min, max] = valueRange(10.8, 10.8, 'MiB');
    expect(max - min).toBeGreaterThan(0);
  });
});
