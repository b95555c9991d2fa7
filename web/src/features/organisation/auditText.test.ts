import { expect, it } from 'vitest';
import { actionText, changeText } from './auditText';

it('says what an event changed', () => {
  expect(changeText({ before: { role: 'member' }, after: { role: 'admin' } })).toBe('role: member → admin');
  expect(changeText({ before: null, after: { teams: ['a'], expires_ms: null } })).toBe('teams: a, expires ms: –');
  expect(changeText({ before: { name: 'a' }, after: null })).toBe('name: a → –');
  expect(changeText({ before: null, after: null })).toBe('');
});

it('writes lists, objects and switches as people do', () => {
  const after = { fields: ['theme', 'bio'], quiet: { on: true, start: '22:00' }, none: [], deep: [{ a: 1 }, 'b'] };
  expect(changeText({ before: null, after })).toBe('fields: theme, bio, quiet: (on: on, start: 22:00), none: –, deep: (a: 1), b');
});

it.each([
  ['user.login', 'Signed in'],
  ['key.create', 'API key created'],
  ['key.rotate', 'API key replaced'],
  ['user.email_add', 'Address added'],
  ['user.update', 'Account changed'],
  ['team.member_add', 'Team member added'],
  ['service_account.disable', 'Service account switched off'],
  ['run.delete', 'Run deleted'],
  ['billing.plan', 'Billing plan'],
  ['constructor.toString', 'Constructor toString'],
  ['odd', 'Odd '],
])('puts %s into words', (action, text) => expect(actionText(action)).toBe(text));
