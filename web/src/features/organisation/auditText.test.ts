import { expect, it } from 'vitest';
import { changeText } from './auditText';

it('says what an event changed', () => {
  expect(changeText({ before: { role: 'member' }, after: { role: 'admin' } })).toBe('role: member → admin');
  expect(changeText({ before: null, after: { teams: ['a'], expires_ms: null } })).toBe('teams: ["a"], expires_ms: –');
  expect(changeText({ before: { name: 'a' }, after: null })).toBe('name: a → –');
  expect(changeText({ before: null, after: null })).toBe('');
});
