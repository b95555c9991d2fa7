import { expect, it } from 'vitest';
import { areConstant } from './constants';

it('a chart is constant if each of its lines is, once there are enough values', () => {
  expect(areConstant([[1, 1, null], [2, 2]], false)).toBe(true);
  expect(areConstant([[1, 1], [2, 3]], false)).toBe(false);
  expect(areConstant([[0.5]], false)).toBe(true);
  expect(areConstant([[0.5]], true)).toBe(false);
  expect(areConstant([Array(20).fill(0.1)], true)).toBe(true);
  expect(areConstant([[], [null]], false)).toBe(false);
});
