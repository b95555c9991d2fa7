import { describe, expect, it } from 'vitest';
import type { Points } from '../../../chart/points';
import { combined, valuesAt } from './combined';
import { parseExpression } from './expression';

const points = (x: number[], y: (number | null)[]): Points => ({ x, y, low: null, high: null, n: null });

describe('the points of an expression', () => {
  it('are those of its metric if it is only one', () => {
    const curve = { ...points([0, 1], [1, 2]), low: [0, 1], high: [2, 3] };
    expect(combined(parseExpression('loss'), [curve])).toBe(curve);
  });

  it('are at the same x where all metrics have it', () => {
    const quotient = combined(parseExpression('a / b'), [points([0, 1, 2], [6, null, 8]), points([0, 1, 2], [2, 2, 0])]);
    expect(quotient).toEqual(points([0, 1, 2], [3, null, null]));
  });

  it('are at each x of the metric with the fewest points, whichever comes first', () => {
    const [often, rarely] = [points([0, 1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5, 6]), points([1.5, 3, 4.5], [10, 20, 30])];
    expect(combined(parseExpression('a + b'), [often, rarely])).toEqual(points([1.5, 3, 4.5], [11, 23, 34]));
    expect(combined(parseExpression('b + a'), [rarely, often])).toEqual(points([1.5, 3, 4.5], [11, 23, 34]));
  });
});

describe('the value at another x', () => {
  it('is that of the last point that is not after it', () => {
    expect(valuesAt(points([1, 2, 3], [10, 20, 30]), [0, 1, 1.9, 3, 5])).toEqual([null, 10, 10, 30, 30]);
  });

  it('is a gap where that point is a gap, or longer ago than 4 usual distances', () => {
    expect(valuesAt(points([0, 1, 2, 3, 20], [1, 1, null, 1, 1]), [2.5, 7, 7.1, 20])).toEqual([null, 1, null, 1]);
  });
});
