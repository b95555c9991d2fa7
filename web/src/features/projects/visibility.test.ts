import { describe, expect, it } from 'vitest';
import { changeText, isForAll, isWider } from './visibility';

describe('a change of who sees a project', () => {
  it('is wider or narrower', () => {
    expect(isWider('private', 'team')).toBe(true);
    expect(isWider('open', 'public')).toBe(false);
    expect([isForAll('team'), isForAll('organisation')]).toEqual([false, true]);
  });

  it('says who loses access', () => {
    expect(changeText('public', 'team', false)).toContain('not in the team loses access');
    expect(changeText('public', 'team', true)).toContain('Everyone but you');
    expect(changeText('team', 'restricted', false)).toContain('except those who were added');
    expect(changeText('restricted', 'private', false)).toContain('Everyone but its owner');
  });

  it('says who gains it', () => {
    expect(changeText('private', 'team', false)).toContain('Everyone in the team sees');
    expect(changeText('team', 'open', false)).toContain('can send runs');
    expect(changeText('team', 'public', false)).toContain('Visitors');
    expect(changeText('team', 'organisation', false)).toContain('signed in sees');
  });
});
