// Events of the audit log in words: what was done, and what it changed, in one line.

import type { AuditEvent, Json } from '../../base/wire';

const DONE: Record<string, string> = {
  accept: 'accepted',
  add: 'added',
  adopt: 'adopted',
  cancel: 'cancelled',
  create: 'created',
  decline: 'declined',
  delete: 'deleted',
  disable: 'switched off',
  enable: 'switched on',
  expired: 'ended',
  invite: 'invitation sent',
  issue: 'issued',
  leave: 'left',
  move: 'moved',
  purge: 'deleted for good',
  reactivate: 'reactivated',
  remove: 'removed',
  rename: 'renamed',
  request: 'requested',
  resend: 'sent again',
  restore: 'restored',
  revoke: 'revoked',
  rotate: 'replaced',
  set: 'set',
  stop: 'stopped',
  suspend: 'suspended',
  transfer: 'transferred',
  update: 'changed',
  verify: 'confirmed',
};
const NAMES: Record<string, string> = { user: 'account', key: 'API key', org: 'organisation', email: 'address', scim: 'SCIM', issuer: 'token issuer', link: 'guest link' };
const PHRASES: Record<string, string> = {
  'user.login': 'Signed in',
  'user.login_failed': 'Sign-in failed',
  'user.logout': 'Signed out',
  'user.sudo': 'Confirmed the password',
  'user.password_set': 'Password set',
  'user.password_reset_request': 'Link to reset the password requested',
  'user.password_reset_link': 'Link to reset the password made',
  'user.session_revoke': 'Session ended',
  'user.new_browser': 'Signed in from a new browser',
  'user.device_login': 'Machine signed in',
  'user.recovery_code_used': 'Recovery code used',
  'user.recovery_codes_set': 'Recovery codes made',
  'user.export': 'Copy of the data downloaded',
  'user.deletion_request': 'Deletion of the account requested',
  'user.deletion_cancel': 'Deletion of the account cancelled',
  'key.refused_scope': 'API key refused: it may not do this',
  'org.settings': 'Settings of the organisation changed',
  'team.alerts': 'Alerts of the team changed',
};

/** What was done: `API key created`, `Signed in`. Actions without a phrase of their own are put into words by their parts. */
export function actionText(action: string): string {
  if (Object.hasOwn(PHRASES, action)) return PHRASES[action]!;
  const [about = '', verb = ''] = action.split('.', 2);
  const words = verb.split('_');
  const last = words[words.length - 1] ?? '';
  const done = Object.hasOwn(DONE, last) ? [...words.slice(0, -1), DONE[last]!] : words;
  const part = words.length > 1 && about === 'user' ? [] : [Object.hasOwn(NAMES, about) ? NAMES[about]! : about.replaceAll('_', ' ')];
  const text = [...part, ...done.map((word) => (Object.hasOwn(NAMES, word) ? NAMES[word]! : word))].join(' ');
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** `role: member → admin, expires: –`; empty if the event changed no values. */
export function changeText({ before, after }: Pick<AuditEvent, 'before' | 'after'>): string {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  return names
    .map((name) => {
      const [old, now] = [before?.[name], after?.[name]];
      const label = name.replaceAll('_', ' ');
      return old === undefined ? `${label}: ${valueText(now)}` : `${label}: ${valueText(old)} → ${valueText(now)}`;
    })
    .join(', ');
}

/** Lists with commas, objects as `name: value`, nothing as a dash. */
function valueText(value: Json | undefined): string {
  if (value === null || value === undefined || value === '') return '–';
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  if (typeof value !== 'object') return String(value);
  const parts = Array.isArray(value) ? value.map(valueText) : Object.entries(value).map(([name, part]) => `${name.replaceAll('_', ' ')}: ${valueText(part)}`);
  return parts.length === 0 ? '–' : Array.isArray(value) ? parts.join(', ') : `(${parts.join(', ')})`;
}
