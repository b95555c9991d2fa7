import { describe, expect, it } from 'vitest';
import { labelsOf, partOf, shareOf, ticksOf, valueAtShare, type Axis } from './xAxis';

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

describe('a linear axis', () => {
  it('moves and zooms by shares of its width', () => {
    expect(partOf({ kind: 'step' }, { min: 0, max: 100 }, 0.5, 1.5)).toEqual({ min: 50, max: 150 });
    expect(shareOf({ kind: 'wall' }, { min: 0, max: 100 }, 25)).toBe(0.25);
  });
});
