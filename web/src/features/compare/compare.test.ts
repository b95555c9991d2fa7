import { describe, expect, it } from 'vitest';
import type { RunRow, Value } from '../../base/api';
import { valueColours, factLines, usualText, bestOf, brushesOf, brushesText, dimensionsOf, extentOf, factText, placeOf, scaleColour, selected, shownFacts, suitsLog, usualAxes, valueAt, type Dimension } from './compare';
import type { FactRow, Json } from '../../base/wire';

const row = (name: string, values: Json[], about: Partial<FactRow> = {}): FactRow => ({ section: 'config', name, differs: true, values, absent: [], ...about });
const runs = (number: number): RunRow[] => Array.from({ length: number }, (_, i) => ({ id: `run-${i}` }) as RunRow);
const dimension = (name: string, values: Value[], categories: string[] | null = null): Dimension => ({ name, unit: '', values, categories, constant: false });

describe('facts', () => {
  const facts = [row('lr', [0.1, 0.2]), row('opt', ['adam'], { differs: false }), row('commit', ['a', null], { section: 'git', absent: [1] })];

  it('are shown where they differ, or all', () => {
    expect(shownFacts(facts, false, '').map(([section, rows]) => [section, rows.map(({ name }) => name)])).toEqual([
      ['config', ['lr']],
      ['git', ['commit']],
    ]);
    expect(shownFacts(facts, true, 'O T')[0]![1].map(({ name }) => name)).toEqual(['opt']);
  });

  it('tell absent from null', () => {
    expect(factText(facts[2]!, 1)).toBeNull();
    expect(factText(row('x', [null, 1]), 0)).toBe('null');
    expect(factText(facts[1]!, 1)).toBe('adam');
  });
});

describe('lines of facts', () => {
  const rare = row('rare', Array(20).fill(null), { absent: Array.from({ length: 19 }, (_, i) => i) });
  const common = row('lr', Array.from({ length: 20 }, (_, i) => (i < 12 ? 1 : i)));

  it('fold what only a few runs have, until they are opened', () => {
    const text = (open: boolean, number: number) => factLines([['config', [rare, common]]], number, () => open).map(({ row, rare }) => row?.name ?? rare);
    expect(text(false, 20)).toEqual([0, 'lr', 1]);
    expect(text(true, 20)).toEqual([0, 'rare', 'lr']);
    expect(text(false, 9)).toEqual([0, 'rare', 'lr']);
  });

  it('mark what is not usual', () => {
    expect(usualText(common, 20)).toBe('1');
    expect(usualText(row('seed', [1, 2, 3]), 3)).toBeNull();
    expect(usualText(row('lr', [1, 1]), 2)).toBeNull();
  });
});

describe('colours of values', () => {
  it('have the best at the bright end, and are faint where there is none', () => {
    const by = dimension('summary.loss', [1, null, 2]);
    const [low, none, high] = valueColours(by, 'minimize', false);
    expect(none).toBe('var(--faint)');
    expect(valueColours(by, 'maximize', false)).toEqual([high, none, low]);
    expect(valueColours(by, null, false)[2]).toBe(low);
  });
});

describe('the best', () => {
  it('follows the goal', () => {
    expect(bestOf([3, 1, null, 1], 'minimize')).toEqual([1, 3]);
    expect(bestOf([3, 1, null], 'maximize')).toEqual([0]);
  });

  it('is nobody without a goal or a difference', () => {
    expect(bestOf([1, 2], null)).toEqual([]);
    expect(bestOf([1, 1, null], 'minimize')).toEqual([]);
  });
});

describe('dimensions', () => {
  const dimensions = dimensionsOf({
    runs: runs(3),
    facts: [row('lr', [0.1, null, 0.2], { absent: [1] }), row('opt', ['sgd', 'adam', 'sgd']), row('seed', [7], { differs: false }), row('host', ['a'], { section: 'hardware' })],
    statistics: [
      { name: 'summary.loss', unit: '', goal: null, values: [1, 2, 3], best: [] },
      { name: 'summary.none', unit: '', goal: null, values: [null, null, null], best: [] },
    ],
  });

  it('are numbers or categories', () => {
    expect(dimensions.map(({ name, values, categories }) => [name, values, categories])).toEqual([
      ['config.lr', [0.1, null, 0.2], null],
      ['config.opt', [1, 0, 1], ['adam', 'sgd']],
      ['config.seed', [7, 7, 7], null],
      ['summary.loss', [1, 2, 3], null],
    ]);
  });

  it('begin with those that differ', () => expect(usualAxes(dimensions)).toEqual(['config.lr', 'config.opt', 'summary.loss']));

  it('leave room for results', () => {
    const many = Array.from({ length: 20 }, (_, i) => dimension(`config.${i}`, [0, 1]));
    const results = Array.from({ length: 6 }, (_, i) => dimension(`summary.${i}`, [0, 1]));
    expect(usualAxes([...many, ...results])).toHaveLength(8);
    expect(usualAxes([...many, ...results]).filter((name) => name.startsWith('summary.'))).toHaveLength(4);
  });

  it('have room around a single value', () => {
    expect(extentOf(dimension('a', [4, 4]))).toEqual({ min: 2, max: 6 });
    expect(extentOf(dimension('a', [0]))).toEqual({ min: -1, max: 1 });
    expect(extentOf(dimension('a', [0, 1], ['x', 'y']))).toEqual({ min: -0.5, max: 1.5 });
  });

  it('are logarithmic where values span three powers of ten', () => {
    expect(suitsLog(dimension('a', [1e-5, null, 0.1]))).toBe(true);
    expect(suitsLog(dimension('a', [0, 1000]))).toBe(false);
    const extent = { min: 0.01, max: 100 };
    expect(placeOf(1, extent, true)).toBeCloseTo(0.5);
    expect(valueAt(0.5, extent, true)).toBeCloseTo(1);
    expect(valueAt(placeOf(7, extent, false), extent, false)).toBeCloseTo(7);
  });
});

describe('brushes', () => {
  it('select the runs within all of them', () => {
    const dimensions = [dimension('a', [1, 2, 3]), dimension('b', [1, null, 1])];
    expect(selected(dimensions, new Map([['a', { min: 2, max: 3 }]]), 3)).toEqual([false, true, true]);
    expect(selected(dimensions, brushesOf('a:2:3;b:0:1'), 3)).toEqual([false, false, true]);
    expect(selected(dimensions, new Map(), 3)).toEqual([true, true, true]);
  });

  it('are kept in the address', () => {
    const brushes = new Map([['config.a;b:c', { min: 0.1, max: 2 }]]);
    expect(brushesOf(brushesText(brushes))).toEqual(brushes);
    expect(brushesOf('a:2:1;b:x:1;c')).toEqual(new Map());
    expect(brushesOf(null)).toEqual(new Map());
  });
});

it('colours are from one end of the scale to the other', () => {
  expect(scaleColour(0, false)).toBe('rgb(0 34 78)');
  expect(scaleColour(2, false)).toBe('rgb(166 137 30)');
  expect(scaleColour(0.5, true)).toBe('rgb(165 160 150)');
});
