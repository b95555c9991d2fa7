import { expect, test } from 'vitest';
import { widthsOf } from '../features/runs/list/layout';
import { own } from './own';
import { viewOf } from '../features/runs/list/view';
import { scaleFor } from './units';

test('inherited names are not found', () => {
  for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
    expect(own({ a: 1 }, name)).toBeUndefined();
    expect(own(JSON.parse(`{"${name}": 2}`), name)).toBe(2);
    expect(viewOf(new URLSearchParams({ sort: name })).sort).toEqual([{ name, descending: false }]);
    expect(scaleFor(name, 5)).toEqual({ by: 1, unit: name });
    const column = { name, label: name, width: 90 } as unknown as Parameters<typeof widthsOf>[0][number];
    expect(widthsOf([column, column], [], 0, 0).widths[1]).toBe(90);
  }
});
