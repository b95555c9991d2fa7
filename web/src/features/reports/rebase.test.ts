import { describe, expect, it } from 'vitest';

import { rebased, type Resolution } from './rebase';
import type { Block } from './reports';

const blocks = (texts: Record<string, string>): Block[] => Object.entries(texts).map(([id, text]) => ({ id, kind: 'text', text }));
const textsOf = (result: readonly Block[]): string[] => result.map((block) => (block.kind === 'text' ? block.text : ''));

describe('changes of two people', () => {
  const base = blocks({ a: 'one', b: 'two' });
  const merge = (theirs: Record<string, string>, mine: Record<string, string>, choice: Resolution = 'mine'): string[] => textsOf(rebased(base, blocks(theirs), blocks(mine), () => choice, () => 'new'));

  it('are merged where they are about other blocks', () => {
    expect(merge({ a: 'ONE', b: 'two' }, { a: 'one', c: 'new', b: 'TWO' })).toEqual(['ONE', 'new', 'TWO']);
    expect(merge({ a: 'one', x: 'theirs', b: 'two' }, { a: 'one', b: 'TWO' })).toEqual(['one', 'theirs', 'TWO']);
    expect(merge({ b: 'two' }, { a: 'one', b: 'TWO' })).toEqual(['TWO']);
  });

  it('become what the user chooses where both changed a block', () => {
    const [theirs, mine] = [{ a: 'theirs', b: 'two' }, { a: 'mine', b: 'two' }];
    expect(merge(theirs, mine, 'mine')).toEqual(['mine', 'two']);
    expect(merge(theirs, mine, 'theirs')).toEqual(['theirs', 'two']);
    expect(merge(theirs, mine, 'both')).toEqual(['theirs', 'mine', 'two']);
    expect(merge({ b: 'two' }, mine, 'both')).toEqual(['mine', 'two']);
  });
});
