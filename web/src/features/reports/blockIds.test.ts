import { describe, expect, it } from 'vitest';

import { idsAfter } from './blockIds';

describe('ids of blocks', () => {
  const fresh = (): string => 'new';
  const after = (nodes: string): string => idsAfter([...'abcd'], [...'1234'], [...nodes], fresh).join(' ');

  it('stay with nodes that stay, and those that move', () => {
    expect(after('abcd')).toBe('1 2 3 4');
    expect(after('cabd')).toBe('3 1 2 4');
    expect(after('ad')).toBe('1 4');
  });

  it('stay with nodes that are changed', () => {
    expect(after('aXcd')).toBe('1 2 3 4');
    expect(after('aXYd')).toBe('1 2 3 4');
    expect(after('XYZ')).toBe('1 2 3');
  });

  it('are new for new nodes', () => {
    expect(after('abXcd')).toBe('1 2 new 3 4');
    expect(after('aXYcd')).toBe('1 2 new 3 4');
    expect(after('abcdX')).toBe('1 2 3 4 new');
  });
});
