import { describe, expect, it } from 'vitest';
import type { Line } from './points';
import { columnsOf, drawn, usualMode, type Drawing } from './drawn';

const line = (id: string, y: (number | null)[], slot = 0): Line => ({
  id,
  label: id,
  slot,
  points: { x: y.map((_, i) => i), y, low: null, high: null, n: null },
});
const how = (more: Partial<Drawing> = {}): Drawing => ({
  mode: 'lines',
  dark: false,
  palette: 'standard',
  smoothing: null,
  hidden: new Set(),
  pinned: new Set(),
  ...more,
});

describe('drawn lines', () => {
  it('keep their colours when others are hidden', () => {
    const lines = [line('a', [1], 0), line('b', [2], 1), line('c', [3], 2)];
    const before = drawn(lines, how()).map(({ id, color }) => [id, color]);
    expect(drawn(lines, how({ hidden: new Set(['b']) })).map(({ id, color }) => [id, color])).toEqual([before[0], before[2]]);
  });

  it('that are pinned are wider and on top', () => {
    const drawnLines = drawn([line('a', [1]), line('b', [2])], how({ pinned: new Set(['a']) }));
    expect(drawnLines.map(({ id, faded }) => [id, faded])).toEqual([['b', true], ['a', false]]);
    expect(drawnLines[1]!.width).toBeGreaterThan(drawnLines[0]!.width);
  });

  it('have their raw values behind them when they are smoothed', () => {
    const [smoothed] = drawn([line('a', [0, 10])], how({ smoothing: { kind: 'mean', width: 2 } }));
    expect([smoothed!.points.y, smoothed!.raw]).toEqual([[5, 5], [0, 10]]);
    expect(columnsOf([smoothed!], false).columns).toEqual([[5, 5], [0, 10]]);
  });

  it('as a band are their mean, with the lines that are far from the others, and the pinned ones', () => {
    const lines = [90, 91, 92, 93, 94, 30].map((value) => line(`gpu ${value}`, [value, value]));
    const drawnLines = drawn(lines, how({ mode: 'band', pinned: new Set(['gpu 90']) }));
    expect(drawnLines.map(({ label }) => label)).toEqual(['mean of 6', 'gpu 90', 'gpu 30']);
    expect(drawnLines[0]).toMatchObject({ id: null, band: true, points: { low: [30, 30], high: [94, 94] } });
    expect(columnsOf(drawnLines, false).columns).toHaveLength(5);
  });
});

it('a logarithmic axis shows only what is above zero', () => {
  expect(columnsOf(drawn([line('a', [-1, 0, 2])], how()), true).columns).toEqual([[null, null, 2]]);
});

it('many devices are a heatmap, many other lines a band', () => {
  expect([usualMode(8, true), usualMode(9, true), usualMode(12, false), usualMode(13, false)]).toEqual(['lines', 'heatmap', 'lines', 'band']);
});

it('counts of many devices are drawn as their sum, and not as their mean', () => {
  const drawnLines = drawn([line('a', [0, 1, 1]), line('b', [0, 0, 5]), line('c', [2, null, 2])], how({ mode: 'band', summed: true }));
  expect(drawnLines.map(({ label, points }) => [label, points.y])).toEqual([['sum of 3', [2, 3, 8]]]);
});
