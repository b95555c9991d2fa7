import { describe, expect, it } from 'vitest';
import { definitionOf, matchesPattern } from './definedMetrics';

describe('patterns', () => {
  it.each([
    ['val/*', 'val/loss', true],
    ['*loss', 'loss/a', false],
    ['*', '', true],
    ['a*b*c', 'a.b.b.c', true],
    ['a*b', 'ab', true],
    ['ab*b', 'ab', false],
    ['*b*', 'abc', true],
    ['a*bc*c', 'abc', false],
    ['loss', 'loss', true],
    ['loss', 'losses', false],
    ['l.ss', 'loss', false],
  ])('%s and %s: %s', (pattern, name, expected) => expect(matchesPattern(pattern, name)).toBe(expected));

  it('takes no exponential time', () => expect(matchesPattern('*a'.repeat(2000), 'a'.repeat(4000) + 'b')).toBe(false));
});

describe('the definition of a metric', () => {
  it('is its own, and in what that leaves out the longest pattern that matches', () => {
    const defined = {
      '*': { hidden: true, summary: 'last' },
      'val/*': { x: 'epoch', goal: 'maximize' },
      'val/loss': { goal: 'minimize', hidden: false },
    } as const;
    expect(definitionOf(defined, 'val/loss')).toEqual({ goal: 'minimize', hidden: false, x: 'epoch', summary: 'last' });
    expect(definitionOf(defined, 'val/acc')).toEqual({ goal: 'maximize', hidden: true, x: 'epoch', summary: 'last' });
    expect(definitionOf(defined, 'lr')).toEqual({ hidden: true, summary: 'last' });
    expect(definitionOf({}, 'constructor')).toEqual({});
  });
});
