import { expect, it } from 'vitest';
import { scaleOf } from './panelScale';

const axis = { scale: 'linear', outliersAside: false, unit: '' } as const;

it('a scale shows all values, with ticks at round places', () => {
  const { place, ticks } = scaleOf([10, 0, 20], axis, 5);
  expect([place(-1), place(10), place(21)].map((at) => Number(at.toFixed(6)))).toEqual([0, 0.5, 1]);
  expect(ticks.map(({ text }) => text)).toEqual(['0', '5', '10', '15', '20']);
});

it('a logarithmic scale has no place for zero and less, and powers of ten', () => {
  const { place, ticks } = scaleOf([0, 1, 100], { ...axis, scale: 'log' }, 6);
  expect(place(10)).toBeCloseTo(0.5, 10);
  expect(ticks.map(({ text }) => text)).toEqual(['1', '2', '5', '10', '20', '50', '100']);
});

it('a scale without values is one of something', () => {
  expect(scaleOf([], axis, 4).ticks.length).toBeGreaterThan(1);
});
