// What users and teams are notified about runs.

import type { ReceiverResponse } from '../../base/wire';

export type Channel = 'email' | 'slack';
export type AlertEvent = 'finished' | 'crashed' | 'custom' | 'findings';
export type Level = 'info' | 'warning' | 'error';

export const EVENTS: readonly (readonly [AlertEvent, string, string])[] = [
  ['finished', 'Run finished', 'It ended successfully on all hosts.'],
  ['crashed', 'Run crashed', 'It failed, crashed, or was lost for ten minutes. Also when a lost run is back.'],
  ['custom', 'Alerts of the run', 'What the training sends with run.alert().'],
  ['findings', 'Findings', 'What rules find: idle GPUs, a hang, a full disk and so on.'],
];

/** What a receiver answered to a test. */
export function testText(name: string, { status, answer, error, took_ms }: ReceiverResponse): string {
  if (status === null) return `${name}: ${error ?? 'no answer'}`;
  const said = answer ? `: ${answer.slice(0, 200)}` : '';
  return `${name} answered ${status} within ${took_ms} ms${said}`;
}
