import { expect, test } from 'vitest';
import { axesOf, flatParameters, searchedParameters, sorted } from './sweeps';
import type { SweepRun } from '../../base/wire';

const run = (id: string, parameters: SweepRun['parameters'], value: number | null): SweepRun => ({ id, run: id, name: id, ending: null, started_ms: 1, duration_ms: 1, waits: false, parameters, value, created_ms: Number(id) });
const RUNS = [run('1', { lr: 0.1, opt: 'adam', net: { width: 8 } }, 3), run('2', { lr: 0.2, opt: 'sgd', net: { width: 8 } }, null), run('3', { lr: 0.3, opt: 'adam', net: { width: 8 } }, 1)];

test('parameters within parameters', () => {
  expect([...flatParameters({ a: 1, net: { width: 8, opt: { name: 'x' } }, list: [1] })]).toEqual([['a', 1], ['net.width', 8], ['net.opt.name', 'x'], ['list', [1]]]);
});

test('an axis for what differs, and one for the metric', () => {
  const axes = axesOf(RUNS, 'loss');
  expect(axes.map(({ name }) => name)).toEqual(['config.lr', 'config.opt', 'summary.loss']);
  expect(axes[1]!.categories).toEqual(['adam', 'sgd']);
  expect(axes[2]!.values).toEqual([3, null, 1]);
  expect(axesOf(RUNS, null)).toHaveLength(2);
  expect(axesOf([], 'loss')).toEqual([]);
});

test('runs without a value come last in both directions', () => {
  const order = (by: string, descending: boolean): string => sorted(RUNS, { by, descending }).map(({ id }) => id).join('');
  expect([order('value', false), order('value', true), order('opt', false), order('created', true)]).toEqual(['312', '132', '132', '321']);
});

test('what a configuration searches', () => {
  const configuration = { parameters: { lr: { min: 0.001, max: 0.1, distribution: 'log_uniform_values' }, opt: { values: ['adam', 'sgd'] }, net: { parameters: { width: { value: 8 } } }, mu: { mu: 0, sigma: 2, distribution: 'normal' } } };
  expect(searchedParameters(configuration)).toEqual([['lr', '0.001 – 0.1, log_uniform_values'], ['opt', 'adam, sgd'], ['net.width', '8'], ['mu', 'mean 0, deviation 2, normal']]);
  expect(searchedParameters({})).toEqual([]);
});
