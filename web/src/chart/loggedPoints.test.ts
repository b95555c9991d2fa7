import { describe, expect, it } from 'vitest';
import { appendRow, byMetric, byTime, fromLogged, loggedUpTo, mergedResumes, type LoggedPoints } from './loggedPoints';

const points = (x: number[], y: (number | null)[], t: (number | null)[] = x): LoggedPoints => ({ x, y, t, low: null, high: null, n: null });

describe('points of an answer', () => {
  it('of log() are a line a process', () => {
    const group = { host: 'a', replaced: false, t: [0], n: null, min: null, max: null };
    const linesByKey = fromLogged({
      groups: [
        { ...group, rank: 0, step: [1], series: { loss: [0.5] } },
        { ...group, rank: 1, step: [1], series: { loss: [0.7] } },
      ],
    });
    expect([...linesByKey.get('loss')!.keys()]).toEqual(['rank 0', 'rank 1']);
  });

  it('have the steps that a training repeated apart, and both over time', () => {
    const group = { host: 'a', rank: 0, n: null, min: null, max: null };
    const linesByKey = fromLogged({
      groups: [
        { ...group, replaced: false, t: [10, 40, 50], step: [1, 2, 3], series: { loss: [0.9, 0.75, 0.6] } },
        { ...group, replaced: true, t: [20, 30], step: [2, 3], series: { loss: [0.8, 0.7] } },
      ],
    });
    const line = linesByKey.get('loss')!.get('rank 0')!;
    expect(line.y).toEqual([0.9, 0.75, 0.6]);
    expect(byTime(line).y).toEqual([0.9, 0.8, 0.7, 0.75, 0.6]);
    expect(loggedUpTo(linesByKey.get('loss')!, 35).get('rank 0')!.y).toEqual([0.9, 0.8, 0.7]);
    const after = loggedUpTo(linesByKey.get('loss')!, 45).get('rank 0')!;
    expect([after.y, byTime(after).y]).toEqual([[0.9, 0.75], [0.9, 0.8, 0.7, 0.75]]);
  });
});

it('a restart that two names tell of is one, between the values that are nearest to it', () => {
  const often = { after_t: 100, after_step: 50, t: 200, step: 40 };
  const seldom = { after_t: 20, after_step: 45, t: 300, step: 45 };
  const later = { after_t: 400, after_step: 90, t: 500, step: 80 };
  expect(mergedResumes([seldom, later, often])).toEqual([often, later]);
});

it('a new row is appended with its time, a known step is not', () => {
  const known = points([1], [5], [100]);
  appendRow(known, { host: 'a', rank: 0, step: 1, t: 150, values: {} }, 6);
  appendRow(known, { host: 'a', rank: 0, step: 2, t: 200, values: {} }, 7);
  expect(known).toEqual(points([1, 2], [5, 7], [100, 200]));
});

describe('another axis', () => {
  it('is the time of the rows, without rows of unknown time', () => {
    expect(byTime(points([1, 2, 3], [5, 6, 7], [100, null, 300]))).toEqual({ ...withoutTimes(points([100, 300], [5, 7])) });
  });

  it('is another metric at the same steps, in ascending order of its values', () => {
    const accuracy = points([1, 2, 3], [0.9, 0.1, 0.5]);
    const lr = points([1, 3, 4], [20, 10, 5]);
    expect(byMetric(accuracy, lr)).toEqual(withoutTimes(points([10, 20], [0.5, 0.9])));
    expect(byMetric(accuracy, undefined).x).toEqual([]);
  });

  it('takes the extremes of buckets along', () => {
    const buckets = { ...points([1, 2], [5, 6], [200, 100]), low: [4, 5], high: [6, 7], n: [2, 3] };
    expect(byTime(buckets)).toEqual({ x: [100, 200], y: [6, 5], low: [5, 4], high: [7, 6], n: [3, 2] });
  });
});

function withoutTimes({ t: _, ...others }: LoggedPoints): Omit<LoggedPoints, 't'> {
  return others;
}

it('a replay shows what was logged up to its time', () => {
  const points = { x: [0, 1, 2], y: [5, 6, 7], low: null, high: null, n: null, t: [100, null, 300], host: 'a', rank: null };
  const cut = (until: number): number[] => loggedUpTo(new Map([['a', points]]), until).get('a')!.x;
  expect([cut(99), cut(100), cut(299), cut(300)]).toEqual([[], [0, 1], [0, 1], [0, 1, 2]]);
});
