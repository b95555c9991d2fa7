import { expect, test } from 'vitest';
import { budgets, numbersOf, planOn, quantity } from './billing';
import type { Use } from '../../base/wire';

const use = (entity: string | null, value: number | null, more: Partial<Use> = {}): Use => ({
  entity,
  category: 'charges',
  value,
  included: 0,
  limit: null,
  percent: null,
  expected: null,
  refuses_new_runs: false,
  ...more,
});

test('budgets tell who is over, and who will be', () => {
  const rows = budgets([
    use('speech', 10, { limit: 100, expected: 20 }),
    use('vision', 50, { limit: 60, expected: 90 }),
    use('robots', 70, { limit: 60 }),
    use('nobody', 0),
    use('unpriced', null, { limit: 60 }),
    use(null, 130),
    use('vision', 5, { category: 'energy' }),
  ]);
  expect(rows.map(({ entity, state }) => [entity, state])).toEqual([
    [null, 'none'],
    ['robots', 'over'],
    ['vision', 'expected over'],
    ['speech', 'within'],
    ['unpriced', 'within'],
  ]);
});

test('the newest plan of a day counts', () => {
  const assigned = [
    { entity: 'vision', plan: 'large', valid_from: '2026-11-15' },
    { entity: 'vision', plan: 'small', valid_from: '2026-01-01' },
    { entity: null, plan: 'all', valid_from: '2026-01-01' },
  ];
  expect(planOn(assigned, 'vision', '2026-11-14')).toBe('small');
  expect(planOn(assigned, 'vision', '2026-11-15')).toBe('large');
  expect(planOn(assigned, 'speech', '2026-11-15')).toBeNull();
  expect(planOn(assigned, null, '2026-11-15')).toBe('all');
});

test('lists of thresholds may be separated by anything', () => {
  expect(numbersOf(' 85, 100;110 120')).toEqual([85, 100, 110, 120]);
  expect(numbersOf('85, x')).toEqual([85, NaN]);
});

test('quantities have their unit', () => {
  expect(quantity(1234.5, 'device_hours', 'EUR')).toMatch(/1.?234.5 h/);
  expect(quantity(3, 'charges', 'EUR')).toMatch(/3.00 EUR/);
  expect(quantity(null, 'charges', 'EUR')).toBe('–');
  expect(quantity(140e-9, 'storage', 'EUR')).toBe('140 B');
  expect(quantity(0.25, 'energy', 'EUR')).toBe('250 Wh');
  expect(quantity(0.001, 'tracked_hours', 'EUR')).toBe('3.6 s');
  expect(quantity(0.001, 'charges', 'EUR')).toMatch(/^< 0.01 EUR$/);
  expect(quantity(0, 'storage', 'EUR')).toBe('0 GB');
});
