import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { poll } from './polling';

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('document', { hidden: false });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it('asks again some time after each answer', async () => {
  const load = vi.fn(async () => undefined);
  const stop = poll(load, () => 1000);
  await vi.advanceTimersByTimeAsync(2500);
  expect(load).toHaveBeenCalledTimes(3);
  stop();
  await vi.advanceTimersByTimeAsync(5000);
  expect(load).toHaveBeenCalledTimes(3);
});

it('does not read when to ask again once its view is gone', async () => {
  let answer = (): void => undefined;
  const everyMs = vi.fn(() => 1000);
  const stop = poll(() => new Promise((resolve) => (answer = resolve)), everyMs);
  stop();
  answer();
  await vi.advanceTimersByTimeAsync(5000);
  expect(everyMs).not.toHaveBeenCalled();
});
