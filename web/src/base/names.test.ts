import { describe, expect, it } from 'vitest';
import { colourOf, initials, isEntityName, nameProblem, withoutMiddle } from './names';

describe('names of users and teams', () => {
  it('are lower-case letters and digits with single marks between them', () => {
    for (const name of ['a', 'ada', 'ada-lovelace', 'team_1', '0x']) expect(isEntityName(name), name).toBe(true);
    for (const name of ['', '-', 'Ada', 'a--b', 'a-', '_a', 'a b', 'é', 'x'.repeat(65)]) expect(isEntityName(name), name).toBe(false);
  });

  it('have a problem only once something was typed', () => {
    expect(nameProblem('')).toBe('');
    expect(nameProblem('ada')).toBe('');
    expect(nameProblem('ada lovelace')).toContain('Letters');
  });
});

describe('a picture made from a name', () => {
  it('has the first letters of the first and last word', () => {
    expect(initials('Ada King Lovelace')).toBe('AL');
    expect(initials('node-07')).toBe('N0');
    expect(initials('ada')).toBe('A');
    expect(initials('𝒜lan 🙂')).toBe('𝒜🙂');
    expect(initials('  ')).toBe('');
  });

  it('has the same colour every time', () => {
    expect(colourOf('ada')).toBe(colourOf('ada'));
    expect(colourOf('')).toMatch(/^hsl\(\d+ 45% 38%\)$/);
  });
});

it('a name that is too long keeps its device, and the beginning of its host', () => {
  expect(withoutMiddle('gpu-node-17.cluster.example · gpu 3', 15)).toBe('gpu-n…le · gpu 3');
  expect(withoutMiddle('gpu 3', 5)).toBe('gpu 3');
});
