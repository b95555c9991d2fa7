// Usage of a month as the API reports it, and how the page shows it.

import type { UsageFigures, UsageReport as WireReport } from '../../base/wire';

/** By what the page groups usage. */
export const GROUPS = ['team', 'project', 'author', 'service_account', 'model', 'sweep'] as const;
export type UsageGroup = (typeof GROUPS)[number];

const NAMELESS: Record<UsageGroup, string> = {
  team: 'no team',
  project: 'no project',
  author: 'no user',
  service_account: 'no service account',
  model: 'no device',
  sweep: 'no sweep',
};

export type UsageRow = UsageFigures & Partial<Record<UsageGroup | 'day', string | null>>;

export type UsageReport = Omit<WireReport, 'rows'> & { rows: UsageRow[] };

/** A figure that bars can show. */
export const FIGURES: readonly [keyof UsageFigures & ('device_hours' | 'tracked_hours' | 'energy_kwh' | 'cost'), string][] = [
  ['device_hours', 'Device-hours'],
  ['tracked_hours', 'Tracked hours'],
  ['energy_kwh', 'Energy (kWh)'],
  ['cost', 'Cost'],
];
export type BarFigure = (typeof FIGURES)[number][0];

/** The rows of groups have colours up to this many; the others share one bar. */
export const MAX_COLOURS = 7;
export const OTHERS = 'others';

export interface DayBar {
  day: string;
  total: number;
  parts: { name: string; value: number; slot: number }[];
}

/** The name of a row's group; runs without a team, author or model have none. Projects of several teams have the team's name too. */
export function nameOf(row: UsageRow, group: UsageGroup): string {
  const [name, team] = [row[group], group === 'project' ? row.team : null];
  if (!name) return team ? `${NAMELESS[group]} (${team})` : NAMELESS[group];
  return team ? `${team}/${name}` : name;
}

/** A bar for each day of a range, stacked by groups: the largest ones first, the rest together. */
export function dayBars(rows: readonly UsageRow[], group: UsageGroup, figure: BarFigure, from: string, to: string): DayBar[] {
  const totals = new Map<string, number>();
  for (const row of rows) totals.set(nameOf(row, group), (totals.get(nameOf(row, group)) ?? 0) + (row[figure] ?? 0));
  const ordered = [...totals].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  const named = ordered.length > MAX_COLOURS ? ordered.slice(0, MAX_COLOURS - 1) : ordered;
  return daysOf(from, to).map((day) => {
    const parts = new Map<string, number>();
    for (const row of rows) {
      const value = row[figure] ?? 0;
      if (row.day !== day || value === 0) continue;
      const name = named.includes(nameOf(row, group)) ? nameOf(row, group) : OTHERS;
      parts.set(name, (parts.get(name) ?? 0) + value);
    }
    const shownParts = [...named, OTHERS].flatMap((name, slot) => (parts.has(name) ? [{ name, value: parts.get(name)!, slot }] : []));
    return { day, total: shownParts.reduce((sum, part) => sum + part.value, 0), parts: shownParts };
  });
}

/** The days of a range, both ends included. */
export function daysOf(from: string, to: string): string[] {
  const days: string[] = [];
  for (let at = Date.parse(from); at <= Date.parse(to); at += 86_400_000) days.push(new Date(at).toISOString().slice(0, 10));
  return days;
}

/** The month before or after one, such as `2026-11`. */
export function shifted(month: string, by: number): string {
  const [year, number] = month.split('-').map(Number) as [number, number];
  return new Date(Date.UTC(year, number - 1 + by, 1)).toISOString().slice(0, 7);
}

/** A number with two decimals, `< 0.01` for less than that, or a dash for what is not known. */
export function amount(value: number | null): string {
  if (value === null) return '–';
  const text = (number: number): string => number.toLocaleString(undefined, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
  return value > 0 && value < 0.005 ? `< ${text(0.01)}` : text(value);
}
