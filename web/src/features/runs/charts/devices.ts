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

const deviceId = (host: string, device: number): string => `${host}\n${device}`;

/**
 * The rank of each device, by `host\ndevice`.
 *
 * It is known only of a host that has as many ranks as devices, with the same numbers: there, a rank uses the device of
 * its local rank.
 */
export function ranksOfDevices(ranks: readonly Rank[], series: readonly PlannedSeries[]): Map<string, number> {
  const rankOf = new Map<string, number>();
  const devices = groupBy(
    series.filter(({ key, device }) => device !== null && key.startsWith('gpu.')),
    ({ host }) => host,
  );
  for (const [host, members] of devices) {
    const numbers = new Set(members.map(({ device }) => device!));
    const here = ranks.filter((rank) => rank.host === host && rank.rank !== null && rank.local_rank !== null);
    const locals = new Map(here.map((rank) => [rank.local_rank!, rank.rank!]));
    if (locals.size !== numbers.size || ![...numbers].every((number) => locals.has(number))) continue;
    for (const [local, rank] of locals) rankOf.set(deviceId(host, local), rank);
  }
  return rankOf;
}

const rankOf = ({ host, device, key }: PlannedSeries, ranks: ReadonlyMap<string, number>): number | null =>
  device === null || !key.startsWith('gpu.') ? null : (ranks.get(deviceId(host, device)) ?? null);

/** The sections with only those series that a filter names; a series of no device has no rank and no device to filter by. */
export function ofDevices(sections: readonly Section[], { rank, device }: DeviceFilter, ranks: ReadonlyMap<string, number>): Section[] {
  if (rank === null && device === null) return [...sections];
  const isWanted = (series: PlannedSeries): boolean =>
    series.device !== null && (device === null || series.device === device) && (rank === null || rankOf(series, ranks) === rank);
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
export function deviceLabel(series: PlannedSeries, ranks: ReadonlyMap<string, number>): string {
  const rank = rankOf(series, ranks);
  return rank === null ? series.label : `${series.label} (rank ${rank})`;
}

/** The lines of each group as one: their mean, from the lowest to the highest. Lines that belong to no group stay. */
export function grouped(lines: readonly Line[], series: readonly PlannedSeries[], by: Grouping, ranks: ReadonlyMap<string, number>): Line[] {
  const groups = new Map<string, { slot: number; lines: Line[] }>();
  lines.forEach((line, i) => {
    const item = series[i]!;
    const number = by === 'rank' ? rankOf(item, ranks) : by === 'device' ? item.device : null;
    const name = by === 'node' ? item.host : number === null ? line.label : `${by} ${number}`;
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
