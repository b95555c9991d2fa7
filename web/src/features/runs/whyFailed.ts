// Words about why a run failed.

import type { Failure } from '../../base/wire';

const SIGNALS: Record<number, string> = { 6: 'SIGABRT', 7: 'SIGBUS', 9: 'SIGKILL', 11: 'SIGSEGV', 15: 'SIGTERM' };

interface Process {
  exit_code: number | null;
  signal: number | null;
}

/** How many processes ended by a signal or with an exit code other than 0. */
export const failedRanks = (ranks: readonly Process[]): number => ranks.filter(({ exit_code, signal }) => exit_code || signal).length;

/** Whether a run, or a process of it, ended otherwise than it should. */
export const hasFailed = ({ state, ranks }: { state: string; ranks: readonly Process[] }): boolean => ['failed', 'crashed', 'lost'].includes(state) || failedRanks(ranks) > 0;

/** How it ended and, where there are several processes, which one failed first. */
export function placeText({ title, exit_code, signal, rank, host, state }: Failure, several: boolean): string {
  const parts: string[] = [];
  if (signal !== null && !title.includes('SIG')) parts.push(SIGNALS[signal] ?? `signal ${signal}`);
  else if (exit_code !== null && !title.startsWith('Exit code')) parts.push(`exit code ${exit_code}`);
  if (several && host !== null) parts.push(rank === null ? `first on ${host}` : `rank ${rank} on ${host} failed first`);
  if (state === 'running') parts.push('other processes are still running');
  return parts.join(' · ');
}
