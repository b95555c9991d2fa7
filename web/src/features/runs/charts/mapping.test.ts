import { describe, expect, it } from 'vitest';
import { mapped, onAxisOf } from './mapping';

const T = 1_700_000_000_000;

describe('steps and times', () => {
  const line = { from: [0, 10, 20, 30], to: [T, T + 1000, T + 5000, T + 6000] };

  it('are mapped to each other, between the points too', () => {
    expect(mapped([line], { min: 10, max: 20 })).toEqual({ min: T + 1000, max: T + 5000 });
    expect(mapped([line], { min: 15, max: 25 })).toEqual({ min: T + 3000, max: T + 5500 });
    expect(mapped([{ from: line.to, to: line.from }], { min: T + 3000, max: T + 5500 })).toEqual({ min: 15, max: 25 });
  });

  it('go together where a restart stepped back', () => {
    const resumed = { from: [T, T + 1000, T + 2000, T + 3000], to: [80, 100, 90, 110] };
    expect(mapped([resumed], { min: T + 500, max: T + 2500 })).toEqual({ min: 90, max: 100 });
  });

  it('are not known where nothing was logged', () => {
    expect(mapped([line], { min: 40, max: 50 })).toBeNull();
    expect(mapped([{ from: [null, 1], to: [T, null] }], { min: 0, max: 2 })).toBeNull();
    expect(mapped([], { min: 0, max: 2 })).toBeNull();
  });

  it('put samples over the steps at which they were taken', () => {
    const mapped = onAxisOf({ x: [T - 1, T, T + 500, T + 3000, T + 9000], y: [1, 2, 3, 4, 5] }, line.to, line.from);
    expect(mapped.x).toEqual([0, 5, 15]);
    expect(mapped.y).toEqual([2, 3, 4]);
  });
});
