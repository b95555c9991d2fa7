import { expect, it } from 'vitest';
import type { Drawn } from './drawn';
import { nearest } from './nearest';

const line = (label: string, x: number[]): Drawn => ({ id: label, label, color: '', dash: [], points: { x, y: x, low: null, high: null, n: null }, band: false, raw: null, width: 1, faded: false });

it('names the lines next to the pointer, the highest first', () => {
  const lines = ['a', 'b', 'c', 'd'].map((label) => line(label, [0, 100]));
  const nearestLines = nearest(lines, [1, 5, 2, null], { x: 50, y: 1.9 }, 100, 2);
  expect(nearestLines.map(({ label, first }) => [label, first])).toEqual([
    ['c', true],
    ['a', false],
  ]);
});

it('leaves out lines that ended before', () => {
  const lines = [line('short', [0, 20]), line('long', [0, 100]), line('empty', [])];
  expect(nearest(lines, [1, 2, 3], { x: 50, y: 0 }, 100, 10).map(({ label }) => label)).toEqual(['long']);
  expect(nearest(lines, [1, 2, 3], { x: 22, y: 0 }, 100, 10)).toHaveLength(2);
});
