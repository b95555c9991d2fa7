import { afterEach, expect, it, vi } from 'vitest';
import { noteReached } from './api';
import { loadPart } from './parts';

afterEach(() => {
  noteReached(true);
  vi.unstubAllGlobals();
});

it('loads nothing before the server responds', async () => {
  const answers = [() => Promise.reject(new TypeError('offline')), () => Promise.resolve(new Response('ok\n'))];
  vi.stubGlobal('fetch', vi.fn(() => answers.shift()!()));
  const load = vi.fn(() => Promise.resolve('the part'));
  noteReached(false);
  await expect(loadPart(load)).rejects.toThrow('The server does not respond');
  expect(load).not.toHaveBeenCalled();
  expect(await loadPart(load)).toBe('the part');
});

it('asks nothing while the server responds', async () => {
  vi.stubGlobal('fetch', vi.fn());
  expect(await loadPart(() => Promise.resolve(1))).toBe(1);
  expect(fetch).not.toHaveBeenCalled();
});
