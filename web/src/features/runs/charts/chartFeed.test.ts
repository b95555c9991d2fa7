import { expect, it } from 'vitest';
import type { Sample } from '../../../base/api';
import { ChartFeed, inRequests, MAX_APPENDED } from './chartFeed';
import type { ChartPlan, PlannedSeries } from './chartPlan';
import { seriesId, type Points } from '../../../chart/points';

const KEYS = Array.from({ length: 8 }, (_, i) => `gpu.${i}.gpu`);
const POINTS = 300;

function feed(): ChartFeed {
  const series = KEYS.map((key): Partial<PlannedSeries> => ({ key, host: 'a', role: 'monitor' }));
  return new ChartFeed({ patterns: KEYS, series } as unknown as ChartPlan, () => undefined);
}

/** A response about the whole run: buckets. */
function response(): Map<string, Points> {
  const x = Array.from({ length: POINTS }, (_, i) => i);
  return new Map(KEYS.map((key) => [seriesId({ host: 'a', role: 'monitor', key }), { x: [...x], y: [...x], low: [...x], high: [...x], n: [...x] }]));
}

const sample = (t: number): Sample => ({ host: 'a', role: 'monitor', t, values: Object.fromEntries(KEYS.map((key) => [key, t])) });
const longest = (of: ChartFeed): number => Math.max(0, ...[...(of.base?.values() ?? [])].map(({ x }) => x.length));

it('a chart keeps a bounded number of points over hours of live view', () => {
  const live = feed();
  live.setBase(response(), POINTS);
  let most = 0;
  for (let t = POINTS + 1; t < 20_000; t++) {
    live.append(sample(t));
    most = Math.max(most, longest(live));
    if (live.isFull) live.setBase(response(), t); // what RunData requests
  }
  expect(most).toBe(POINTS + MAX_APPENDED + 1);
});

it('a chart that is zoomed into for hours keeps nothing of what it does not show', () => {
  const zoomed = feed();
  zoomed.setBase(response(), POINTS);
  for (let t = POINTS + 1; t < 20_000; t++) {
    zoomed.append(sample(t));
    if (zoomed.isFull) zoomed.forgetBase(); // what RunData does while it is zoomed
  }
  expect(longest(zoomed)).toBe(0);
});

it('samples that are in the response already are not appended', () => {
  const live = feed();
  live.setBase(response(), 500);
  live.append(sample(400));
  expect(longest(live)).toBe(POINTS);
  live.append(sample(501));
  live.append(sample(501));
  expect(longest(live)).toBe(POINTS + 1);
});

it('a replay shows what is up to its time, and all of a zoom', () => {
  const replayed = feed();
  const points = response();
  replayed.show(points, false, 99);
  expect([...replayed.points.values()].map(({ x, low, n }) => [x.length, low!.length, n!.length])).toEqual(KEYS.map(() => [100, 100, 100]));
  replayed.show(points, true, 99);
  expect(replayed.points).toBe(points);
});

it('requests are small enough to be parsed between two frames', () => {
  const small = Array.from({ length: 45 }, () => feed());
  expect(inRequests(small.slice(0, 12)).map((feeds) => feeds.length)).toEqual([12]);
  expect(inRequests(small).flat()).toEqual(small);
  for (const feeds of inRequests(small)) expect(feeds.length * KEYS.length * feeds[0]!.maxPoints).toBeLessThanOrEqual(30_000);
  for (const feed of small) feed.maxPoints = 1200;
  expect(inRequests(small.slice(0, 4)).map((feeds) => feeds.length)).toEqual([3, 1]);
});
