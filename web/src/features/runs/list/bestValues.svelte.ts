// The best value of each column of a table of runs, of metrics for which runs declared a goal.

import { getContext, setContext } from 'svelte';
import type { DefinedMetrics, Goal, Params } from '../../../base/api';
import { definitionOf, loadDefinedMetrics } from '../definedMetrics';
import type { ColumnSummary } from '../../../base/wire';

const CONTEXT = Symbol('best values');
const SUMMARY = 'summary.';

type Extremes = Pick<ColumnSummary, 'min' | 'max'>;

/** The columns of metrics with a goal. */
export function goalsOf(columns: readonly string[], defined: DefinedMetrics): Map<string, Goal> {
  const goals = new Map<string, Goal>();
  for (const column of columns) {
    const goal = column.startsWith(SUMMARY) ? definitionOf(defined, column.slice(SUMMARY.length)).goal : undefined;
    if (goal) goals.set(column, goal);
  }
  return goals;
}

/** The best value of each column; none where all runs have the same. */
export function bestOf(goals: ReadonlyMap<string, Goal>, extremes: Readonly<Record<string, Extremes | undefined>>): Map<string, number> {
  const bests = new Map<string, number>();
  for (const [column, goal] of goals) {
    const { min = null, max = null } = extremes[column] ?? {};
    if (min !== null && max !== null && min !== max) bests.set(column, goal === 'minimize' ? min : max);
  }
  return bests;
}

export class BestValues {
  #best = $state.raw<ReadonlyMap<string, number>>(new Map());

  /** Whether a run's value in a column is the best of all runs that match. */
  has(column: string, value: unknown): boolean {
    return typeof value === 'number' && this.#best.get(column) === value;
  }

  /** `scope`: the project of the list; `extremes`: of its columns. */
  async load(scope: Params, extremes: Readonly<Record<string, Extremes>>, signal: AbortSignal): Promise<void> {
    const names = Object.keys(extremes).filter((name) => name.startsWith(SUMMARY));
    const goals = names.length ? goalsOf(names, await loadDefinedMetrics(scope, signal)) : new Map<string, Goal>();
    this.#best = bestOf(goals, extremes);
  }
}

export const provideBestValues = (): BestValues => setContext(CONTEXT, new BestValues());
export const bestValues = (): BestValues | undefined => getContext<BestValues | undefined>(CONTEXT);
