// Where a link to a finding leads: its run, zoomed to its time, with the charts that decided.

import { runHref } from '../../base/route.svelte';
import { zoomChanges } from '../../chart/viewState';
import { findingName, rangeOf } from './findings';

interface Run {
  id: string;
  entity: string | null;
  project: string;
  started_ms?: number;
  ended_ms?: number | null;
}

export function findingHref(run: Run, finding: { id: string; from_ms: number; to_ms: number | null }, now: number): string {
  const { from, to } = zoomChanges(rangeOf(finding, run, now));
  return `${runHref(run, 'system')}?${new URLSearchParams({ finding: findingName(finding), from: from!, to: to! })}`;
}
