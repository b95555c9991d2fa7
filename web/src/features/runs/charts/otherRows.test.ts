import { expect, test } from 'vitest';
import { otherRows } from './otherRows';

const other = (step: number, key: string, value: unknown, rank: number | null = null) => ({ host: 'node1', rank, key, step, time_ms: step * 1000, value: value as string });

test('values of one step and process are a row, the newest first', () => {
  const rows = otherRows([other(0, 'note', 'first'), other(1, 'note', 'a'), other(1, 'list', [1, null]), other(1, 'note', 'b', 1), other(1, 'note', 'last')]);
  expect(rows.map(({ step, process, texts }) => [step, process, Object.fromEntries(texts)])).toEqual([
    [1, 'node1', { note: 'last', list: '[1,null]' }],
    [1, 'rank 1', { note: 'b' }],
    [0, 'node1', { note: 'first' }],
  ]);
});

test('media of W&B\'s client are left out', () => {
  expect(otherRows([other(0, 'image', { _type: 'image-file', path: 'a.png' })])).toEqual([]);
});
