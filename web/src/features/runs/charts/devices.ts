// The devices of a run: which rank uses which, and lines of several devices as one.

import type { ChartPlan, PlannedSeries, Section } from './chartPlan';
import { groupBy } from '../../../base/groups';
import { spread, type Line } from '../../../chart/points';
import type { Rank } from '../../../base/wire';

export const GROUPINGS = ['node', 'rank', 'device'] as const;
export type Grouping = (typeof GROUPINGS)[number];

export interface DeviceFilter {
  host: string | null;
  rank: number | null;
  device: number | null;
}

const place = (host: string, device: number): string => `${host}\n${device}`;

/**
 * The rank of each device, by `host\ndevice`.
 *
 * It is known only of a host that has as many ranks as devices, with the same numbers: there, a rank uses the device of
 * its local rank.
 */
export function ranksOfDevices(ranks: readonly Rank[], series: readonly PlannedSeries[]): Map<string, number> {
  const found = new Map<string, number>();
  const devices = groupBy(
    series.filter(({ key, device }) => device !== null && key.startsWith('gpu.')),
    ({ host }) => host,
  );
  for (const [host, members] of devices) {
    const numbers = new Set(members.map(({ device }) => device!));
    const here = ranks.filter((one) => one.host === host && one.rank !== null && one.local_rank !== null);
    const locals = new Map(here.map((one) => [one.local_rank!, one.rank!]));
    if (locals.size !== numbers.size || ![...numbers].every((number) => locals.has(number))) continue;
    for (const [local, rank] of locals) found.set(place(host, local), rank);
  }
  return found;
}

const rankOf = ({ host, device, key }: PlannedSeries, ranks: ReadonlyMap<string, number>): number | null =>
  device === null || !key.startsWith('gpu.') ? null : (ranks.get(place(host, device)) ?? null);

/** The sections with only those series that a filter names; a series of no device has no rank and no device to filter by. */
export function ofDevices(sections: readonly Section[], { rank, device }: DeviceFilter, ranks: ReadonlyMap<string, number>): Section[] {
  if (rank === null && device === null) return [...sections];
  const isWanted = (one: PlannedSeries): boolean =>
    one.device !== null && (device === null || one.device === device) && (rank === null || rankOf(one, ranks) === rank);
  return sections
    .map((section) => ({
      ...section,
      charts: section.charts
        .map((chart): ChartPlan => ({ ...chart, series: chart.series.filter(isWanted) }))
        .filter((chart) => chart.series.length > 0),
    }))
    .filter((section) => section.charts.length > 0);
}

/** A device in words. */
export function deviceLabel(one: PlannedSeries, ranks: ReadonlyMap<string, number>): string {
  const rank = rankOf(one, ranks);
  return rank === null ? one.label : `${one.label} (rank ${rank})`;
}

/** The lines of each group as one: their mean, from the lowest to the highest. Lines that belong to no group stay. */
export function grouped(lines: readonly Line[], series: readonly PlannedSeries[], by: Grouping, ranks: ReadonlyMap<string, number>): Line[] {
  const groups = new Map<string, { slot: number; lines: Line[] }>();
  lines.forEach((line, i) => {
    const one = series[i]!;
    const number = by === 'rank' ? rankOf(one, ranks) : by === 'device' ? one.device : null;
    const name = by === 'node' ? one.host : number === null ? line.label : `${by} ${number}`;
    const group = groups.get(name);
    if (group) group.lines.push(line);
    else groups.set(name, { slot: number ?? groups.size, lines: [line] });
  });
  return [...groups].map(([name, { slot, lines: members }]) =>
    members.length === 1 && members[0]!.label === name
      ? members[0]!
      : { id: `${by}:${name}`, label: members.length > 1 ? `${name} (mean of ${members.length})` : name, slot, points: spread(members) },
  );
}
