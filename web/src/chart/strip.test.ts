import { expect, it } from 'vitest';
import { stripPath, valueAt } from './strip';
import type { Axis } from './xAxis';

const axis: Axis = { kind: 'wall' };

const row = (x: number[], y: (number | null)[]) => ({ label: 'GPU', unit: '%', top: 100, points: { x, y, low: null, high: null, n: null } });

it('an area is as high as its values, and ends at gaps', () => {
  const path = stripPath(row([0, 5, 10], [100, 50, 0]), axis, { min: 0, max: 10 }, 100, 10);
  expect(path).toBe('M0.0,10L0.0,0.0L50.0,5.0L100.0,10.0L100.0,10Z');
  expect(stripPath(row([0, 5, 10], [100, null, 100]), axis, { min: 0, max: 10 }, 100, 10).split('Z')).toHaveLength(3);
});

it('an area is cut at the shown part of its axis', () => {
  expect(stripPath(row([0, 10, 20, 30, 40], [50, 50, 50, 50, 50]), axis, { min: 10, max: 20 }, 100, 10)).toBe('M0.0,10L0.0,5.0L0.0,5.0L100.0,5.0L100.0,5.0L100.0,10Z');
  expect(stripPath(row([], []), axis, { min: 0, max: 1 }, 100, 10)).toBe('');
});

it('the value at a place is that of the nearest point', () => {
  expect(valueAt({ x: [0, 10], y: [1, 2] }, 6)).toBe(2);
  expect(valueAt({ x: [], y: [] }, 6)).toBeNull();
});
