import { afterEach, expect, it, vi } from 'vitest';
import { send } from './api';

const keys: string[] = [];

/** Answers requests in turn; null: no response arrives. */
function answering(...statuses: (number | null)[]): void {
  keys.length = 0;
  vi.stubGlobal('window', { location: { pathname: '/' } });
  vi.stubGlobal('fetch', (_url: string, { headers }: { headers: Record<string, string> }) => {
    keys.push(headers['idempotency-key']!);
    const status = statuses.shift();
    return status === null ? Promise.reject(new TypeError('offline')) : Promise.resolve(new Response('{}', { status, headers: { 'content-type': 'application/json' } }));
  });
}

afterEach(() => vi.unstubAllGlobals());

it('sends the same key again only while no response has arrived', async () => {
  answering(null, null, 500, 200, 200);
  for (let attempt = 0; attempt < 3; attempt++) await expect(send('POST', 'teams', { name: 'vision' })).rejects.toThrow();
  await send('POST', 'teams', { name: 'vision' });
  await send('POST', 'teams', { name: 'vision' });
  const [first, second, third, ...others] = keys;
  expect([second, third]).toEqual([first, first]);
  expect(new Set([first, ...others]).size).toBe(3);
});

it('sends another key with another request', async () => {
  answering(null, 200, 200);
  await expect(send('POST', 'teams', { name: 'vision' })).rejects.toThrow();
  await send('POST', 'teams', { name: 'speech' });
  await send('POST', 'teams', { name: 'vision' });
  expect(keys[1]).not.toBe(keys[0]);
  expect(keys[2]).toBe(keys[0]);
});
