// The verdict about a run as lists show it.
import type { RunVerdict } from '../../base/wire';

/** The verdict about a run; null if it was not judged, or by a server that keeps none. */
export const verdictOf = (run: { verdict?: RunVerdict | null }): RunVerdict | null => run.verdict ?? null;

/** Whether something is wrong with a run, as far as is known. */
export const isSick = (verdict: RunVerdict | null): boolean => verdict?.severity === 'critical' || verdict?.severity === 'warning';

/** The lost device-hours as a cell shows them; empty if none were lost. */
export function lostText(verdict: RunVerdict | null): string {
  const hours = verdict?.lost_device_hours ?? 0;
  if (hours <= 0) return '';
  return hours < 10 ? `${Number(hours.toPrecision(2))} h` : `${Math.round(hours).toLocaleString('en')} h`;
}
