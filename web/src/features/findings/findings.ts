// Findings of a run as the page shows them.

import type { Evidence, Finding } from '../../base/wire';
import { formatDuration, formatMoment } from '../../base/time';
import { formatValue } from '../../base/units';

/** The time that a finding needs at least around it in charts. */
const AROUND_MS = 60_000;

/** Which hosts and devices a finding is about: `GPU 3 of node0`, `8 devices of node0`; empty for one host without devices. */
export function subjectText(finding: Finding, hosts: number): string {
  const { devices } = finding;
  const on = hosts > 1 && finding.hosts.length > 0 ? (finding.hosts.length > 2 ? `${finding.hosts.length} hosts` : finding.hosts.join(' and ')) : '';
  const devicesText = devices.length === 0 ? '' : devices.length > 4 ? `${devices.length} devices` : `device${devices.length > 1 ? 's' : ''} ${devices.join(', ')}`;
  return [devicesText, on].filter(Boolean).join(' of ');
}

/** Since when a finding holds, for how long, and whether it goes on: `from 2026-11-29 10:16:32 for 35 min 00 s`. */
export function spanText(finding: Finding, now: number): string {
  const end = finding.to_ms ?? now;
  const lasted = formatDuration(Math.max(end - finding.from_ms, 0));
  const from = formatMoment(finding.from_ms);
  if (finding.to_ms !== null) return `from ${from} for ${lasted}`;
  return end > finding.from_ms ? `since ${from}, for ${lasted} so far` : `since ${from}`; // the clock here may be late
}

/** What a finding cost; empty if no time of a device was lost. */
export function costText(finding: Finding): string {
  const { device_hours: hours, money } = finding.cost;
  if (hours <= 0) return '';
  const text = `${hours < 10 ? hours.toPrecision(2) : Math.round(hours).toLocaleString('en')} device-hours lost`;
  return money === null ? text : `${text}, ${money > 0 && money < 0.005 ? '< 0.01' : money.toFixed(2)} in money`;
}

/** The value of a series that decided: `1,110 MHz, normally 1,980 MHz`. */
export function evidenceText({ value, unit, normal }: Pick<Evidence, 'value' | 'unit' | 'normal'>): string {
  const text = formatValue(value, unit);
  return normal === null ? text : `${text}, normally ${formatValue(normal, unit)}`;
}

/** The range of time that charts show for a finding, with some room around it, as far as the run goes. */
export function rangeOf(finding: Pick<Finding, 'from_ms' | 'to_ms'>, run: { started_ms?: number; ended_ms?: number | null }, now: number): { min: number; max: number } {
  const end = finding.to_ms ?? run.ended_ms ?? now;
  const room = Math.max(AROUND_MS, (end - finding.from_ms) * 0.1);
  return { min: Math.max(finding.from_ms - room, run.started_ms ?? 0), max: Math.min(end + room, run.ended_ms ?? Infinity) };
}

/** What an address calls a finding: those of one rule begin at different times. */
export const findingName = (finding: Pick<Finding, 'id' | 'from_ms'>): string => `${finding.id}~${finding.from_ms}`;

/** The finding that an address names; of a finding that grew meanwhile, the one that begins nearest. */
export function findingOf(findings: readonly Finding[], name: string): Finding | null {
  const [id, from] = name.split('~');
  const distance = ({ from_ms }: Finding): number => Math.abs(from_ms - Number(from));
  return findings.filter((finding) => finding.id === id).sort((a, b) => distance(a) - distance(b))[0] ?? null;
}

/** The series that decided, each once. */
export const decidingSeries = (finding: Finding): Evidence[] =>
  finding.evidence.filter(({ key, host }, i, all) => all.findIndex((evidence) => evidence.key === key && evidence.host === host) === i);

/** Of the signals that rules miss: what provides them, and which rules could decide then. */
export interface Remedy {
  text: string;
  keys: string[];
  rules: string[];
}

export function remediesOf(undecided: readonly { id: string; needs: string[] }[], remedies: Readonly<Record<string, string>>): Remedy[] {
  const reasons = new Map<string, { keys: Set<string>; rules: Set<string> }>();
  for (const { id, needs } of undecided) {
    for (const key of needs) {
      const text = Object.hasOwn(remedies, key) ? remedies[key]! : null;
      if (text === null) continue;
      const reason = reasons.get(text) ?? { keys: new Set(), rules: new Set() };
      reason.keys.add(key);
      reason.rules.add(id);
      reasons.set(text, reason);
    }
  }
  return [...reasons].map(([text, { keys, rules }]) => ({ text, keys: [...keys], rules: [...rules] }));
}
