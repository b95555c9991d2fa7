import { expect, it } from 'vitest';
import { SyntaxProblem } from './expression';
import { parsePattern } from './keyPattern';

const NAMES = ['loss', 'train/loss', 'train/loss_2', 'val/accuracy', 'gpu.0.temp', 'gpu.12.temp', 'gpu.*.temp', 'a+b', 'größe', '', 'aaa', 'ab', 'x]y', '😀'];

it.each([
  'loss',
  '^loss$',
  'loss$',
  '^(train|val)/',
  'gpu\\.\\d+\\.temp',
  'gpu\\.[0-9]{2}\\.temp',
  'gpu\\.\\*',
  '^.$',
  '^[^a-z]',
  'a\\+b',
  '^a{2,3}$',
  '^a{1,}$',
  '^(?:ab?)+$',
  '^(a|b|)+$',
  '(a*)*$',
  '^$',
  '[]x]y|x\\]',
  '[\\w.]+\\.\\w{4}',
  'l.?ss_?\\d',
  'x{',
  '\\S\\W\\D',
  'ö',
  '^a+?b',
  '',
])('/%s/ matches what the browser matches', (pattern) => {
  const expected = pattern === '[]x]y|x\\]' ? NAMES.filter((name) => name === 'x]y') : NAMES.filter((name) => new RegExp(pattern, 's').test(name));
  if (pattern === '^.$') expected.push('😀'); // a character here, two for the browser
  expect(NAMES.filter(parsePattern(pattern)).sort()).toEqual([...expected].sort());
});

it.each([
  ['(a', 'not closed', 0],
  ['a)', 'closes nothing', 1],
  ['[a', 'not closed', 0],
  ['*a', 'nothing to repeat', 0],
  ['a**', 'nothing to repeat', 2],
  ['a{3,2}', 'expected {least,most}', 1],
  ['a{1000}', 'expected {least,most}', 1],
  ['((a{50}){50}){50}', 'repeats too much', 0],
  ['(?=a)', 'others are not supported', 0],
  ['(a)\\1', 'is not supported', 3],
  ['a\\', 'expected a character', 1],
  ['[z-a]', 'the range z-a is empty', 1],
  ['a'.repeat(201), 'at most 200 characters', 200],
])('/%s/ is wrong: %s', (pattern, message, at) => {
  let problem: unknown;
  try {
    parsePattern(pattern);
  } catch (error) {
    problem = error;
  }
  expect(problem).toBeInstanceOf(SyntaxProblem);
  expect((problem as SyntaxProblem).message).toContain(message);
  expect((problem as SyntaxProblem).at).toBe(at);
});

it('takes a time that is linear in the name where the browser takes an exponential one', () => {
  const name = 'a'.repeat(5000);
  expect(parsePattern('^(a+)+$')(`${name}!`)).toBe(false);
  expect(parsePattern('^(a|a)*b')(name)).toBe(false);
  expect(parsePattern('(a*)*(a*)*$')(name)).toBe(true);
});
