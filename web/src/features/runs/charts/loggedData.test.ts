import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { LoggedData } from './loggedData.svelte';

/** The answers of the server, as the test gives them. */
let answers: ((status: number, body: object) => Promise<void>)[] = [];
let logged: LoggedData;
beforeEach(async () => {
  vi.useFakeTimers();
  vi.stubGlobal('window', { location: { pathname: '/' } });
  answers = [];
  vi.stubGlobal('fetch', () => {
    return new Promise((resolve) => {
      answers.push(async (status, body) => {
        resolve(Response.json(body, { status }));
        await vi.advanceTimersByTimeAsync(0);
      });
    });
  });
  logged = new LoggedData({ id: 'a', entity: null }, false);
});
afterEach(() => {
  logged.close();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const group = { host: 'node', rank: null, step: [1], t: [10], replaced: false, n: null, series: { loss: [3] }, min: null, max: null };

it('has a row that came while its points were being answered', async () => {
  await answers[0]!(200, ['loss']);
  logged.show('loss');
  await vi.advanceTimersByTimeAsync(30);
  logged.take([{ host: 'node', rank: null, step: 2, t: 20, values: { loss: 5 } }]);
  await answers[1]!(200, { groups: [group], resumes: [] });
  expect([...logged.lines('loss')!.values()].map(({ x, y }) => [x, y])).toEqual([[[1, 2], [3, 5]]]);
});

it('asks again for what the server could not answer', async () => {
  await answers[0]!(503, { error: 'too much to do' });
  expect([logged.names, logged.error]).toEqual([null, 'too much to do']);
  await vi.advanceTimersByTimeAsync(3000);
  await answers[1]!(200, ['loss']);
  expect([logged.names, logged.error]).toEqual([['loss'], '']);
  logged.show('loss');
  await vi.advanceTimersByTimeAsync(30);
  await answers[2]!(500, { error: 'broken' });
  await vi.advanceTimersByTimeAsync(3000);
  expect(answers).toHaveLength(4);
});
