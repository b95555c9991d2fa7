import { expect, it } from 'vitest';
import { inKeptOrder } from './keptOrder';

const itself = (name: string): string => name;

it('what is new comes after what was shown', () => {
  expect(inKeptOrder(['train/loss', 'val/loss'], ['eval/loss', 'train/loss', 'val/loss'], itself)).toEqual(['train/loss', 'val/loss', 'eval/loss']);
  expect(inKeptOrder(['a', 'b'], ['b', 'c'], itself)).toEqual(['b', 'c']);
});

it('things are the newest ones', () => {
  const newer = { id: 'a', value: 2 };
  expect(inKeptOrder([{ id: 'a', value: 1 }], [newer], ({ id }) => id)).toEqual([newer]);
});
