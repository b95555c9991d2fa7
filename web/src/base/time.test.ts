import { describe, expect, it } from 'vitest';
import {
  elapsedTicks,
  formatAgo,
  formatDaysAgo,
  formatDuration,
  formatElapsed,
  formatElapsedTicks,
  formatStepTicks,
  formatWallTicks,
  formatWidth,
  stepTicks,
  wallTicks,
} from './time';

const M = 60_000;
const H = 60 * M;
const at = (...parts: [number, number, number, number?, number?, number?]): number => new Date(...parts).getTime();

describe('durations', () => {
  it.each([
    [200, '0.2 s'],
    [42_900, '42 s'],
    [83_000, '1 min 23 s'],
    [2 * H + 5 * M, '2 h 05 min'],
    [52 * H, '2 d 4 h'],
  ])('%s ms is %s', (ms, text) => expect(formatDuration(ms)).toBe(text));

  it.each([
    [200, '200 ms'],
    [15_000, '15 s'],
    [2 * H, '2 h'],
  ])('buckets of %s ms are %s wide', (ms, text) => expect(formatWidth(ms)).toBe(text));

  it.each([
    [0, 'just now'],
    [59_000, '59 s ago'],
    [3 * H, '3 h ago'],
    [49 * H, '2 d ago'],
  ])('%s ms ago is %s', (ms, text) => expect(formatAgo(ms)).toBe(text));

  it.each([
    [5_000, 1000, '0:05'],
    [90_000, 1000, '1:30'],
    [1.5 * H, M, '1:30:00'],
    [54 * H, H, '2d 06:00'],
    [250, 50, '0:00.25'],
    [-3_000, 1000, '−0:03'],
  ])('%s ms since the start, by %s, is %s', (ms, step, text) => expect(formatElapsed(ms, step)).toBe(text));
});

describe('ticks of a time axis', () => {
  it('are round since the start', () => {
    const start = 1_760_000_012_345;
    const ticks = elapsedTicks(start, start + 100_000, 5, start);
    expect(ticks.map((tick) => tick - start)).toEqual([0, 30_000, 60_000, 90_000]);
    expect(formatElapsedTicks(ticks, start)).toEqual(['0:00', '0:30', '1:00', '1:30']);
  });

  it('are round times of day, and the date where it changes', () => {
    const ticks = wallTicks(at(2026, 10, 21, 22, 10), at(2026, 10, 22, 3, 50), 6);
    expect(formatWallTicks(ticks)).toEqual(['23:00', '11-22', '01:00', '02:00', '03:00']);
  });

  it('have seconds where they are close together', () => {
    const ticks = wallTicks(at(2026, 10, 21, 9, 0, 1), at(2026, 10, 21, 9, 0, 21), 4);
    expect(formatWallTicks(ticks)).toEqual(['09:00:05', '09:00:10', '09:00:15', '09:00:20']);
  });

  it('of steps are whole numbers', () => {
    expect(stepTicks(0, 3, 8)).toEqual([0, 1, 2, 3]);
    const ticks = stepTicks(0, 100_000, 5);
    expect(formatStepTicks(ticks)).toEqual(['0', '20k', '40k', '60k', '80k', '100k']);
  });
});

it.each([
  [0, 'today'],
  [14 * H, 'today'],
  [24 * H, '1 d ago'],
])('a day that began %s ms ago is %s', (ms, text) => expect(formatDaysAgo(ms)).toBe(text));

it('steps that are too large to count have ticks', () => {
  expect(stepTicks(2 ** 60, 2 ** 60 + 256, 5).length).toBeLessThan(10);
  expect(stepTicks(1e300, 1e300, 5).length).toBeLessThan(10);
});
