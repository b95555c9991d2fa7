import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Replay, replayChanges, replayOf, stageEnd } from './replay.svelte';

const HOUR = 3_600_000;
const seen: number[] = [];
const replay = (): Replay => new Replay(1000, 1000 + HOUR, (at) => seen.push(at), () => Date.now());

beforeEach(() => {
  seen.length = 0;
  vi.useFakeTimers({ now: 0 });
});
afterEach(() => vi.useRealTimers());

it('goes on at its speed until the end, and then begins again', () => {
  const hour = replay();
  hour.speed = 600;
  hour.play();
  vi.advanceTimersByTime(1000);
  expect(hour.at).toBe(1000 + 600_000);
  vi.advanceTimersByTime(10_000);
  expect(hour.at).toBe(1000 + HOUR);
  expect(hour.playing).toBe(false);
  hour.play();
  expect(hour.at).toBe(1000);
  hour.pause();
});

it('stays where it is while it is paused, and goes on from there', () => {
  const hour = replay();
  hour.play();
  vi.advanceTimersByTime(500);
  hour.pause();
  const at = hour.at;
  vi.advanceTimersByTime(5000);
  expect(hour.at).toBe(at);
  hour.seek(2 * HOUR);
  expect(hour.at).toBe(1000 + HOUR);
  hour.seek(0);
  expect(hour.at).toBe(1000);
  expect(seen.at(-1)).toBe(1000);
});

it('goes on where it was when the browser had stopped its timers', () => {
  const hour = replay();
  hour.play();
  vi.setSystemTime(HOUR);
  vi.advanceTimersByTime(250);
  expect(hour.at).toBe(1000 + 60_000);
  hour.pause();
});

it.each([
  [0, HOUR / 256],
  [HOUR / 3, HOUR / 2],
  [HOUR / 2, HOUR / 2],
  [HOUR / 2 + 1, HOUR],
  [HOUR, HOUR],
])('at %d, the points up to %d are requested', (at, end) => {
  expect(stageEnd(0, HOUR, at)).toBe(Math.ceil(end));
});

it.each([
  [30_250, 60, 'replay=30.25'],
  [0, 600, 'replay=0&speed=600'],
] as const)('is in the address at %d ms, %d times as fast', (afterMs, speed, text) => {
  const changes = replayChanges({ start: 1000, at: 1000 + afterMs, speed });
  const query = new URLSearchParams(Object.entries(changes).filter((change): change is [string, string] => change[1] !== null));
  expect(query.toString()).toBe(text);
  expect(replayOf(query)).toEqual({ afterMs, speed });
});

it.each(['', 'replay=', 'replay=-1', 'replay=1e9', 'replay=x', 'speed=10'])('is not in the address with “%s”', (query) => {
  expect(replayOf(new URLSearchParams(query))).toBeNull();
});
