import { expect, it } from 'vitest';
import type { ConsoleMatch } from '../../base/wire';
import { blocksOf, faultOf, partsOf } from './logBlocks';

const match = (number: number, rank: number | null = null): ConsoleMatch => ({
  time_ms: number,
  host: 'a',
  rank,
  number,
  stream: 'stdout',
  text: `line ${number}`,
  before: [`line ${number - 2}`, `line ${number - 1}`],
  after: [`line ${number + 1}`],
});

it('matches near each other are one block, with each line once', () => {
  const blocks = blocksOf([match(5), match(7), match(20)]);
  expect(blocks.map(({ lines }) => lines.map(({ number }) => number))).toEqual([
    [3, 4, 5, 6, 7, 8],
    [18, 19, 20, 21],
  ]);
  expect(blocks[0]!.lines.map(({ match: index }) => index)).toEqual([null, null, 0, null, 1, null]);
});

it('each process has blocks of its own', () => {
  expect(blocksOf([match(5, 0), match(6, 1), match(7, 0)])).toHaveLength(3);
});

it('parts of a text are the words in it and what is between them', () => {
  expect(partsOf('Loss and loss', 'loss')).toEqual(['', 'Loss', ' and ', 'loss', '']);
  expect(partsOf('İx', 'x')).toEqual(['İx']);
});

it('an expression that is not typed to its end is not searched for', () => {
  expect(faultOf('(a')).not.toBe('');
  expect([faultOf('(?i)a+'), faultOf('^a$')]).toEqual(['', '']);
});
