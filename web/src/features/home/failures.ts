// Failed runs by project and cause: fifty runs that failed alike are one line.

import type { ListedRun } from '../../base/wire';
import { STATE_TEXT, why } from '../runs/runText';

export interface Failure {
  key: string;
  entity: string | null;
  project: string;
  /** `exit code 1`, `SIGKILL, out of memory`; or what the state means. */
  cause: string;
  /** The newest first, as they were given. */
  runs: ListedRun[];
}

/** The failures in the order of their newest runs. */
export function failuresOf(runs: readonly ListedRun[]): Failure[] {
  const failures = new Map<string, Failure>();
  for (const run of runs) {
    const cause = why(run) || (STATE_TEXT[run.state] ?? run.state);
    const key = JSON.stringify([run.entity, run.project, run.state, cause]);
    const failure = failures.get(key);
    if (failure) failure.runs.push(run);
    else failures.set(key, { key, entity: run.entity, project: run.project, cause, runs: [run] });
  }
  return [...failures.values()];
}
