// What an event of the audit log changed, in one line.

import type { AuditEvent } from '../../base/wire';
import type { Json } from '../../base/wire';

/** `role: member → admin, expires_ms: –`; empty if the event changed no values. */
export function changeText({ before, after }: Pick<AuditEvent, 'before' | 'after'>): string {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  return names
    .map((name) => {
      const [old, now] = [before?.[name], after?.[name]];
      return old === undefined ? `${name}: ${valueText(now)}` : `${name}: ${valueText(old)} → ${valueText(now)}`;
    })
    .join(', ');
}

function valueText(value: Json | undefined): string {
  if (value === null || value === undefined || value === '') return '–';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
