import { describe, expect, it } from 'vitest';
import { atLevel, drawableOn, labelsOf, levelOf, partOf, pointsOn, shareOf, ticksOf, valueAtShare, type Axis } from './xAxis';

const range = { min: 1, max: 10_000 };

describe('a logarithmic axis', () => {
  const axis: Axis = { kind: 'step', log: true };

  it('has each power of ten equally wide', () => {
    expect(shareOf(axis, range, 100)).toBeCloseTo(0.5);
    expect(valueAtShare(axis, range, 0.25)).toBeCloseTo(10);
    expect(shareOf(axis, range, valueAtShare(axis, range, 1.5))).toBeCloseTo(1.5);
  });

  it('moves and zooms by shares of its width, and stays positive', () => {
    const moved = partOf(axis, range, -0.25, 0.75);
    expect(moved.min).toBeCloseTo(0.1);
    expect(moved.max).toBeCloseTo(1000);
  });

  it('has ticks at powers', () => {
    const ticks = ticksOf(axis, range.min, range.max, 6);
    expect(ticks).toEqual(expect.arrayContaining([1, 10, 100, 1000, 10_000]));
    expect(labelsOf(axis, [1, 1000])).toHaveLength(2);
  });
});

describe('a logarithmic axis of the time since a start', () => {
  const start = 1_760_000_000_000;
  const axis: Axis = { kind: 'elapsed', start, log: true };
  const range = { min: start + 1000, max: start + 10_000_000 };

  it('counts from the start', () => {
    expect(shareOf(axis, range, start + 100_000)).toBeCloseTo(0.5);
    expect(valueAtShare(axis, range, 0.25)).toBeCloseTo(start + 10_000, -1);
    expect(atLevel(axis)(levelOf(axis)(start + 5000))).toBeCloseTo(start + 5000, 0);
  });

  it('has ticks at round times', () => {
    const ticks = ticksOf(axis, range.min, range.max, 7);
    expect(labelsOf(axis, ticks)).toEqual(['1 s', '10 s', '1 min', '10 min', '1 h']);
    const few = ticksOf(axis, start + 600_000, start + 3_000_000, 7);
    expect(labelsOf(axis, few)).toEqual(['10 min', '15 min', '30 min']);
    const near = ticksOf(axis, start + 600_000, start + 660_000, 3);
    expect(labelsOf(axis, near)).toEqual(['10:00', '10:30', '11:00']);
  });

  it('has no place for what was at the start or before', () => {
    expect(drawableOn(axis, { min: start, max: start + 3_600_000 })).toEqual({ min: start + 1000, max: start + 3_600_000 });
    expect(drawableOn(axis, { min: start - 50, max: start + 5000 })).toEqual({ min: start + 50, max: start + 5000 });
    expect(drawableOn(axis, range)).toBe(range);
    expect(drawableOn({ kind: 'wall' }, { min: -1, max: 1 })).toEqual({ min: -1, max: 1 });
    const points = { x: [start - 1, start, start + 1], y: [1, 2, 3], low: null, high: [1, 2, 4], n: null };
    expect(pointsOn(axis, points)).toEqual({ x: [start + 1], y: [3], low: null, high: [4], n: null });
    expect(pointsOn({ ...axis, log: false }, points)).toBe(points);
  });
});

describe('a linear axis', () => {
  it('moves and zooms by shares of its width', () => {
    expect(partOf({ kind: 'step' }, { min: 0, max: 100 }, 0.5, 1.5)).toEqual({ min: 50, max: 150 });
    expect(shareOf({ kind: 'wall' }, { min: 0, max: 100 }, 25)).toBe(0.25);
  });
});
