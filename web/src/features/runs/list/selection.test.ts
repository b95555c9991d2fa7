import { expect, it } from 'vitest';
import { allMatching, clicked, extended, isSelected, NOTHING, rangeTo } from './selection';

const run = (id: string) => ({ id, entity: null, name: id, may: null });

it('a click selects a run, another lets go of it', () => {
  const one = clicked(NOTHING, run('a'), 3);
  expect([isSelected(one, run('a')), isSelected(one, run('b'))]).toEqual([true, false]);
  expect(clicked(one, run('a'), 3).runs.size).toBe(0);
});

it('a click with Shift selects from the click before, in both directions', () => {
  const one = clicked(NOTHING, run('d'), 3);
  expect([rangeTo(one, 5), rangeTo(one, 1), rangeTo(NOTHING, 4)]).toEqual([[3, 5], [1, 3], [4, 4]]);
  expect([...extended(one, [run('e'), run('f')]).runs.values()].map(({ id }) => id)).toEqual(['d', 'e', 'f']);
});

it('all that match are selected until a click begins anew', () => {
  const all = allMatching(clicked(NOTHING, run('a'), 0));
  expect([isSelected(all, run('z')), all.runs.size]).toEqual([true, 0]);
  expect(isSelected(clicked(all, run('b'), 1), run('z'))).toBe(false);
});

it('runs of several teams may have the same id', () => {
  const one = clicked(NOTHING, { ...run('a'), entity: 'vision' }, 0);
  expect(isSelected(one, run('a'))).toBe(false);
});
