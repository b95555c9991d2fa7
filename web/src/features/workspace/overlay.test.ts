import { describe, expect, it } from 'vitest';
import type { Points } from '../../chart/points';
import { extentOf, groupLines, meansOf, overlayTable, pointsOf, withTail } from './overlay';
import type { OverlayKey } from '../../base/wire';

const points = (x: number[], y: (number | null)[], low: (number | null)[] | null = null): Points => ({ x, y, low, high: low, n: null });

describe('the points of a response', () => {
  it('are those of each run', () => {
    const answer: OverlayKey = {
      key: 'loss',
      width: null,
      groups: [
        { x: [0, 1], lines: [{ run: 'a', y: [1, 2], min: null, max: null, n: null }, { run: 'b', y: [3, null], min: null, max: null, n: null }] },
        { x: [5], lines: [{ run: 'c', y: [4], min: [3], max: [5], n: [2] }] },
      ],
    };
    const pointsByRun = pointsOf(answer);
    expect([...pointsByRun.keys()]).toEqual(['a', 'b', 'c']);
    expect(pointsByRun.get('b')).toEqual(points([0, 1], [3, null]));
    expect(pointsByRun.get('c')).toEqual({ x: [5], y: [4], low: [3], high: [5], n: [2] });
    expect(extentOf([pointsByRun])).toEqual({ min: 0, max: 5 });
    expect(extentOf([new Map()])).toBeNull();
  });
});

describe('newer points', () => {
  it('replace the last bucket, which was not complete', () => {
    expect(withTail(points([0, 10, 20], [1, 2, 3]), points([20, 30], [4, 5]))).toEqual(points([0, 10, 20, 30], [1, 2, 4, 5]));
  });

  it('follow the others', () => {
    expect(withTail(points([0], [1]), points([10], [2])).x).toEqual([0, 10]);
    expect(withTail(points([0], [1]), points([], []))).toEqual(points([0], [1]));
  });

  it('keep extremes where one of both has some', () => {
    const tail = { ...points([10], [2], [1]), n: [3] };
    expect(withTail(points([0], [7]), tail)).toEqual({ x: [0, 10], y: [7, 2], low: [7, 1], high: [7, 1], n: [1, 3] });
  });
});

describe('groups of runs', () => {
  const groups = [{ id: 'a', label: 'lr: 0.1', runs: 75 }, { id: 'b', label: 'lr: 0.2', runs: 3 }];
  const means = meansOf({ key: 'loss', width: 1, lines: [{ group: 1, runs: 2, x: [0, 1], y: [2, 4], min: [1, 3], max: [3, 5], n: [2, 2] }] }, groups);

  it('are one line each, with the number of all their runs', () => {
    const lines = groupLines(groups, means, () => 4);
    expect(lines).toEqual([{ id: 'b', label: 'lr: 0.2 (3)', slot: 4, dashed: true, ofMany: true, points: { x: [0, 1], y: [2, 4], low: [1, 3], high: [3, 5], n: [2, 2] } }]);
  });
});

describe('a table of all panels', () => {
  const scope = { project: 'digits', entity: null };

  it('has as many points as one response may hold', () => {
    const href = overlayTable('system', scope, ['a', 'b'], ['cpu', 'gpu.{i}.temp'], 'relative');
    expect(href).toBe('/api/v1/overlay/system?project=digits&runs=a&runs=b&keys=cpu&keys=gpu.%7Bi%7D.temp&x=relative&points=2000&format=csv');
    const many = Array.from({ length: 100 }, (_, i) => `n${i}`);
    expect(overlayTable('logged', scope, many, many, 'step')).toContain('&points=200&');
  });

  it('is missing without values, and for more names than a response may have', () => {
    expect(overlayTable('logged', scope, [], ['loss'], 'step')).toBeNull();
    expect(overlayTable('logged', scope, ['a'], [], 'step')).toBeNull();
    expect(overlayTable('logged', scope, ['a'], Array.from({ length: 101 }, (_, i) => `n${i}`), 'step')).toBeNull();
  });
});
