import { describe, expect, it } from 'vitest';
import { nameText, parseExpression, SyntaxProblem } from './expression';
import { shownText } from './layout';

const value = (text: string, ...values: (number | null)[]): number | null => parseExpression(text).value(values);
const unit = (text: string, ...units: string[]): string => parseExpression(text).unit(units);

describe('an expression', () => {
  it('names each of its metrics once, in their order', () => {
    expect(parseExpression('gpu.0.powerWatts / gpu.0.gpu + gpu.0.powerWatts').metrics.map(({ name }) => name)).toEqual(['gpu.0.powerWatts', 'gpu.0.gpu']);
    expect(parseExpression('"train/loss" * gpu.*.gpu').metrics.map(({ name }) => name)).toEqual(['train/loss', 'gpu.*.gpu']);
    expect(parseExpression('logged:cpu - system:"cpu"').metrics).toEqual([
      { name: 'cpu', source: 'logged' },
      { name: 'cpu', source: 'system' },
    ]);
  });

  it.each([
    ['a + b * 2', [1, 3], 7],
    ['(a + b) * 2', [1, 3], 8],
    ['a - b - 1', [10, 3], 6],
    ['a / b / 2', [12, 3], 2],
    ['-a ^ 2', [3], -9],
    ['2 ^ 3 ^ 2 + 0 * a', [1], 512],
    ['a*-b', [2, 3], -6],
    ['a*b', [2, 3], 6],
    ['max(a, b, 7) - min(a, 1)', [2, 3], 6],
    ['sqrt(a) + log10(b) + .5e1', [9, 1000], 11],
    ['min - max', [5, 2], 3],
    ['"a \\"b\\" \\\\"', [4], 4],
  ])('%s of %j is %d', (text, values, expected) => {
    expect(value(text, ...values)).toBe(expected);
  });

  it.each([
    ['a / b', [1, 0]],
    ['a / b', [0, 0]],
    ['a + b', [1, null]],
    ['0 * a', [null]],
    ['sqrt(a)', [-1]],
    ['log(a)', [0]],
    ['exp(a)', [1e4]],
    ['1 / (1 / a)', [0]],
  ])('%s of %j is a gap', (text, values) => {
    expect(value(text, ...values)).toBeNull();
  });

  it.each([
    ['', 'expected a metric, a number or “(”, found the end', 0],
    ['a +', 'found the end', 3],
    ['a b', 'expected an operator', 2],
    ['train/loss)', 'expected an operator', 10],
    ['(a', 'expected “)”', 2],
    ['"a', 'the quotes are not closed', 0],
    ['1 + 2', 'at least one metric', 0],
    ['sin(a)', '“sin” is not a function', 0],
    ['min(a)', 'min takes 2 to 8 values, not 1', 0],
    ['2x', 'names that begin with a digit need quotes', 0],
    ['system:', 'expected the name of a metric', 7],
    ['constructor(a)', '“constructor” is not a function', 0],
    ['a; alert(1)', 'expected an operator', 1],
    [`a${'+a'.repeat(400)}`, 'at most 500 characters', 500],
  ])('“%s” is wrong: %s', (text, message, at) => {
    let problem: unknown;
    try {
      parseExpression(text);
    } catch (error) {
      problem = error;
    }
    expect(problem).toBeInstanceOf(SyntaxProblem);
    expect((problem as SyntaxProblem).message).toContain(message);
    expect((problem as SyntaxProblem).at).toBe(at);
  });

  it('takes as many brackets as fit', () => {
    expect(value(`${'('.repeat(249)}a${')'.repeat(249)}`, 3)).toBe(3);
  });
});

it.each([
  ['a', ['W'], 'W'],
  ['a + b', ['W', 'W'], 'W'],
  ['a + b', ['W', '%'], ''],
  ['a / b', ['W', 'W'], ''],
  ['a / b', ['W', '%'], 'W/%'],
  ['a / 1000', ['W'], 'W'],
  ['2 * a', ['bytes'], 'bytes'],
  ['-a', ['W'], 'W'],
  ['a * b', ['W', 's'], ''],
  ['sqrt(a)', ['W'], ''],
  ['max(a, b)', ['W', 'W'], 'W'],
  ['a / b', ['1', 's'], ''],
])('the unit of %s of %j is “%s”', (text, units, expected) => {
  expect(unit(text, ...units)).toBe(expected);
});

it.each(['loss', 'train/loss', 'gpu.0.powerWatts', 'a "b" \\', 'logged', '0', 'größe.x', 'a-b', 'a.', 'min', ' '])('“%s” as an expression is that metric', (name) => {
  const { metrics, plain } = parseExpression(nameText(name));
  expect([metrics[0]!.name, plain]).toEqual([name, true]);
  expect(parseExpression(nameText(name, 'system')).metrics).toEqual([{ name, source: 'system' }]);
});

it.each([
  ['"train/loss"', 'train/loss'],
  ['"a \\"b\\" \\\\ c"', 'a "b" \\ c'],
  ['"train/loss" / "val/loss"', '"train/loss" / "val/loss"'],
  ['loss', 'loss'],
])('%s is shown as %s', (text, shown) => {
  expect(shownText(text)).toBe(shown);
});
