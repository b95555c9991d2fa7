import { describe, expect, it } from 'vitest';
import { cellText, compareCells, fileUrl, heatmap, isMediaCell, nearest, spaced, type Cell } from './media';

describe('histograms on one grid', () => {
  it('keeps the share of every bin', () => {
    const { low, high, columns } = heatmap([{ counts: [1, 3], edges: [0, 1, 2], count: 4 }], 4);
    expect([low, high]).toEqual([0, 2]);
    expect([...columns[0]!]).toEqual([0.125, 0.125, 0.375, 0.375]);
  });

  it('puts histograms of different extents on the same rows', () => {
    const { columns } = heatmap([{ counts: [1], edges: [0, 1], count: 1 }, { counts: [1], edges: [9, 10], count: 1 }], 10);
    expect(columns.map((column) => column.findIndex((share) => share > 0.99))).toEqual([0, 9]);
    expect(columns.map((column) => column.reduce((a, b) => a + b))).toEqual([1, 1]);
  });

  it('shows a single value, and nothing for no values', () => {
    expect(heatmap([{ counts: [7], edges: [3, 3], count: 7 }], 3).columns[0]).toEqual(new Float64Array([0, 1, 0]));
    expect(heatmap([{ counts: [], edges: [], count: 0 }], 2).columns[0]).toEqual(new Float64Array(2));
  });
});

describe('tables', () => {
  it('sorts numbers before texts, and nothing last', () => {
    const cells: Cell[] = ['b10', null, 2, 'b9', true, -1];
    expect([...cells].sort(compareCells)).toEqual([-1, true, 2, 'b9', 'b10', null]);
  });

  it('shows cells as texts, and knows media', () => {
    expect([0.1 + 0.2, 3, null, true, 'x', [1]].map((cell) => cellText(cell))).toEqual(['0.3', '3', '', 'true', 'x', '[1]']);
    expect(isMediaCell({ kind: 'image', sha256: 'a' })).toBe(true);
    expect(isMediaCell('image')).toBe(false);
  });
});

it('finds the nearest step', () => {
  expect([-5, 4, 6, 99].map((step) => nearest([0, 5, 10], step))).toEqual([0, 1, 1, 2]);
});

it('thins out evenly and keeps the ends', () => {
  expect(spaced([0, 1, 2, 3, 4, 5, 6, 7, 8], 3)).toEqual([0, 4, 8]);
  expect(spaced([1, 2], 3)).toEqual([1, 2]);
});

it('escapes names in addresses', () => {
  expect(fileUrl({ id: 'a/b', entity: null }, 'ff', '../x y')).toBe('/api/v1/runs/a%2Fb/files/ff?download=..%2Fx+y');
  expect(fileUrl({ id: 'r', entity: 'vision' }, 'ff', 'x')).toBe('/api/v1/runs/r/files/ff?entity=vision&download=x');
});
