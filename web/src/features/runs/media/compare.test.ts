import { describe, expect, it } from 'vitest';
import { allSteps, barsOf, comparedKeys, commonExtent, stepAt } from './compare';
import type { MediaKey } from '../../../base/wire';

const mediaKey = (key: string, kind = 'image'): MediaKey => ({ key, kind, count: 1, first_step: 0, last_step: 0, last_ms: 0 });

it('lists the names of all runs, those that most runs have first', () => {
  const keys = comparedKeys([[mediaKey('a'), mediaKey('b')], [], [mediaKey('b'), mediaKey('c', 'table')]]);
  expect(keys.map(({ key, kind }) => [key, kind])).toEqual([['b', 'image'], ['a', 'image'], ['c', 'table']]);
  expect(keys[0]!.found.map((runKey) => runKey?.key)).toEqual(['b', undefined, 'b']);
  expect(comparedKeys([])).toEqual([]);
});

describe('steps', () => {
  it('joins those of all runs', () => expect(allSteps([[0, 10, 100], [], [5, 10]])).toEqual([0, 5, 10, 100]));

  it('finds the last one that is not after another', () => {
    expect([-1, 0, 4, 5, 99].map((at) => stepAt([0, 5, 10], at))).toEqual([null, 0, 0, 5, 10]);
    expect(stepAt([], 3)).toBeNull();
  });
});

describe('histograms', () => {
  const wide = { counts: [1, 4], edges: [0, 1, 2], count: 5 };

  it('have one extent', () => {
    expect(commonExtent([wide, null, { counts: [1], edges: [-3, -3], count: 1 }])).toEqual([-3, 2]);
    expect(commonExtent([null, { counts: [], edges: [], count: 0 }])).toBeNull();
  });

  it('become bars', () => {
    expect(barsOf(wide, [0, 4])).toEqual([
      { left: 0, width: 0.25, height: 0.25 },
      { left: 0.25, width: 0.25, height: 1 },
    ]);
    expect(barsOf({ counts: [7], edges: [3, 3], count: 7 }, [3, 3])).toEqual([{ left: 0.495, width: 0.01, height: 1 }]);
  });
});
