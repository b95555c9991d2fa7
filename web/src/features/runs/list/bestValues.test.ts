import { expect, it } from 'vitest';
import { bestOf, goalsOf } from './bestValues.svelte';

it('finds the columns of metrics with a goal', () => {
  const defined = { 'val/*': { goal: 'minimize' }, 'val/acc': { goal: 'maximize' }, lr: { hidden: true } } as const;
  expect([...goalsOf(['name', 'summary.val/loss', 'summary.val/acc', 'summary.lr', 'config.val/x'], defined)]).toEqual([
    ['summary.val/loss', 'minimize'],
    ['summary.val/acc', 'maximize'],
  ]);
});

it('finds the best value of each, unless all runs have the same', () => {
  const goals = new Map([['a', 'minimize'], ['b', 'maximize'], ['c', 'maximize'], ['d', 'minimize']] as const);
  const extremes = { a: { min: 1, max: 2 }, b: { min: 1, max: 2 }, c: { min: 3, max: 3 }, d: { min: null, max: null } };
  expect([...bestOf(goals, extremes)]).toEqual([['a', 1], ['b', 2]]);
});
