import { expect, it } from 'vitest';
import { allMatching, clicked, extended, isSelected, NOTHING, rangeTo } from './selection';

const run = (id: string) => ({ id, entity: null, name: id, may: null });

it('a click selects a run, another lets go of it', () => {
  const selection = clicked(NOTHING, run('a'), 3);
  expect([isSelected(selection, run('a')), isSelected(selection, run('b'))]).toEqual([true, false]);
  expect(clicked(selection, run('a'), 3).runs.size).toBe(0);
});

it('a click with Shift selects from the click before, in both directions', () => {
  const selection = clicked(NOTHING, run('d'), 3);
  expect([rangeTo(selection, 5), rangeTo(selection, 1), rangeTo(NOTHING, 4)]).toEqual([[3, 5], [1, 3], [4, 4]]);
  expect([...extended(selection, [run('e'), run('f')]).runs.values()].map(({ id }) => id)).toEqual(['d', 'e', 'f']);
});

it('all that match are selected until a click begins anew', () => {
  const all = allMatching(clicked(NOTHING, run('a'), 0));
  expect([isSelected(all, run('z')), all.runs.size]).toEqual([true, 0]);
  expect(isSelected(clicked(all, run('b'), 1), run('z'))).toBe(false);
});

it('runs of several teams may have the same id', () => {
  const selection = clicked(NOTHING, { ...run('a'), entity: 'vision' }, 0);
  expect(isSelected(selection, run('a'))).toBe(false);
});
