// Changes of many runs at once.

import { get, send, type Params, type RunKey } from '../../../base/api';
import { count } from '../../../base/units';
import type { Selected } from './selection';
import type { BulkResult, RunPage } from '../../../base/wire';

export const MAX_AT_ONCE = 1000;

export type Action = 'update' | 'delete' | 'restore' | 'stop';

export interface BulkChanges {
  add_tags?: string[];
  remove_tags?: string[];
  project?: string;
}

export interface Outcome {
  done: RunKey[];
  failed: { run: RunKey; error: string }[];
}

/** Do something to runs, a thousand with each request. What one run does not allow does not keep the others from it. */
export async function changeRuns(runs: readonly RunKey[], action: Action, changes?: BulkChanges): Promise<Outcome> {
  const outcome: Outcome = { done: [], failed: [] };
  for (let at = 0; at < runs.length; at += MAX_AT_ONCE) {
    const batch = runs.slice(at, at + MAX_AT_ONCE);
    const body = { runs: batch.map(({ id, entity }) => ({ id, entity })), do: action, ...(changes && { changes }) };
    const { results } = await send<{ results: BulkResult[] }>('POST', 'runs/bulk', body);
    results.forEach(({ error }, i) => {
      const run = batch[i]!;
      if (error === null || error === undefined) outcome.done.push(run);
      else outcome.failed.push({ run, error });
    });
  }
  return outcome;
}

/** Delete runs in the trash for good: on the page of a machine only. */
export async function removeRuns(runs: readonly RunKey[]): Promise<Outcome> {
  const outcome: Outcome = { done: [], failed: [] };
  for (let at = 0; at < runs.length; at += MAX_AT_ONCE) {
    const batch = runs.slice(at, at + MAX_AT_ONCE);
    const { kept } = await send<{ kept: Record<string, string> }>('POST', 'trash/remove', { runs: batch.map(({ id }) => id) });
    for (const run of batch) {
      const error = kept[run.id];
      if (error === undefined) outcome.done.push(run);
      else outcome.failed.push({ run, error });
    }
  }
  return outcome;
}

/** All runs that match, from the server page by page. */
export async function allRuns(params: Params): Promise<Selected[]> {
  const runs: Selected[] = [];
  let after: string | null = null;
  do {
    const page: RunPage = await get<RunPage>('runs', { ...params, limit: MAX_AT_ONCE, after });
    runs.push(...page.runs.map(({ id, entity, name, may }) => ({ id, entity, name, may: may ?? null })));
    after = page.next;
  } while (after !== null);
  return runs;
}

/** `3 runs were deleted`, and what went wrong with the others. */
export function outcomeText({ done, failed }: Outcome, outcome: string): string {
  const texts = [];
  if (done.length > 0 || failed.length === 0) texts.push(`${runsText(done.length)} ${done.length === 1 ? 'was' : 'were'} ${outcome}.`);
  const [first] = failed;
  if (first) texts.push(`${runsText(failed.length)} could not be ${outcome}: ${first.run.id}: ${first.error}`);
  return texts.join(' ');
}

export const runsText = (number: number): string => (number === 1 ? '1 run' : `${count(number)} runs`);
