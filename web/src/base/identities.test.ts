import { expect, test } from 'vitest';
import { identified } from './identities';

test('items of one identity have keys of their own, and the same ones when the list is loaded again', () => {
  const devices = ['trn.0', 'tpu.0', 'trn.0', 'trn.0'];
  const keys = identified(devices, (device) => device).map(({ key }) => key);

  expect(new Set(keys).size).toBe(4);
  expect(keys[0]).toBe('trn.0');
  expect(identified(devices, (device) => device).map(({ key }) => key)).toEqual(keys);
});
