// Metrics of several runs over each other, as the API answers, and as points of lines.

import { apiPath, type State, type Value } from '../../base/api';
import type { PanelMetric, PanelX } from './panel';
import type { Line, Points } from '../../chart/points';
import type { GroupedKey, OverlayKey, OverlayRun } from '../../base/wire';

/** What charts need of a run that is shown. */
export type ShownRun = Pick<OverlayRun, 'id' | 'name'>;

/** Points by run. */
export type RunPoints = ReadonlyMap<string, Points>;

export function pointsOf({ groups }: OverlayKey): Map<string, Points> {
  const pointsByRun = new Map<string, Points>();
  for (const { x, lines } of groups) {
    for (const { run, y, min, max, n } of lines) pointsByRun.set(run, { x, y, low: min, high: max, n });
  }
  return pointsByRun;
}

/** The points with newer ones: those from the first of these on are replaced, because the last bucket was not complete. */
export function withTail(before: Points, tail: Points): Points {
  const first = tail.x[0];
  if (first === undefined) return before;
  const at = before.x.findIndex((x) => x >= first);
  const kept = at < 0 ? before.x.length : at;
  const join = (a: Value[] | null, b: Value[] | null): Value[] | null =>
    a || b ? [...(a ?? before.y).slice(0, kept), ...(b ?? tail.y)] : null;
  const countsOf = ({ n, y }: Points): number[] => n ?? y.map((value) => (value === null ? 0 : 1));
  return {
    x: [...before.x.slice(0, kept), ...tail.x],
    y: [...before.y.slice(0, kept), ...tail.y],
    low: join(before.low, tail.low),
    high: join(before.high, tail.high),
    n: before.n || tail.n ? [...countsOf(before).slice(0, kept), ...countsOf(tail)] : null,
  };
}

/** The same in the middle of its buckets, where charts of time draw them. */
export function centred(points: Points, width: number): Points {
  const half = width / 2;
  return { ...points, x: points.x.map((x) => x + half) };
}

/** A group of runs: what they have in common, and how many they are. */
export interface RunGroup {
  id: string;
  label: string;
  runs: number;
}

/** The means of each group of a response, by its id. */
export function meansOf({ lines }: GroupedKey, groups: readonly RunGroup[]): Map<string, Points> {
  return new Map(lines.map(({ group, x, y, min, max, n }) => [groups[group]!.id, { x, y, low: min, high: max, n }]));
}

/** One line of each group: the mean of its runs, between the lowest and the highest of them. */
export function groupLines(groups: readonly RunGroup[], points: RunPoints, slotOf: (id: string) => number): Line[] {
  return groups.flatMap(({ id, label, runs }) => {
    const mean = points.get(id);
    return mean ? [{ id, label: `${label} (${runs})`, slot: slotOf(id), dashed: true, ofMany: true, points: mean }] : [];
  });
}

/** Limits of the server for one response. */
const [MAX_KEYS, MAX_VALUES, MAX_POINTS] = [100, 2_000_000, 2000];

/** The address of all values of some metrics as CSV; null if there are none, or more than one response may hold. */
export function overlayTable(
  source: PanelMetric['source'],
  scope: { project: string | null; entity: string | null },
  runs: readonly string[],
  keys: readonly string[],
  x: PanelX,
): string | null {
  if (runs.length === 0 || keys.length === 0 || keys.length > MAX_KEYS) return null;
  const points = Math.min(MAX_POINTS, Math.floor(MAX_VALUES / (runs.length * keys.length)));
  return apiPath(`overlay/${source}`, { ...scope, runs: [...runs], keys: [...keys], x, points, format: 'csv' });
}

/** The extent of all points; null without any. */
export function extentOf(all: Iterable<RunPoints>): { min: number; max: number } | null {
  let [min, max] = [Infinity, -Infinity];
  for (const runs of all) {
    for (const { x } of runs.values()) {
      if (x.length === 0) continue;
      min = Math.min(min, x[0]!);
      max = Math.max(max, x[x.length - 1]!);
    }
  }
  return min <= max ? { min, max } : null;
}
