import { expect, it } from 'vitest';
import type { ListedRun } from '../../base/wire';
import { failuresOf } from './failures';

const run = (id: string, project: string, ending: Partial<ListedRun>): ListedRun =>
  ({ id, entity: null, project, state: 'failed', exit_code: null, signal: null, out_of_memory: null, ...ending }) as ListedRun;

it('puts runs of a project that failed alike together, the newest failure first', () => {
  const failures = failuresOf([
    run('a', 'digits', { exit_code: 1 }),
    run('b', 'faces', { exit_code: 1 }),
    run('c', 'digits', { exit_code: 1 }),
    run('d', 'digits', { state: 'crashed', signal: 9, out_of_memory: true }),
    run('e', 'digits', { state: 'lost' }),
  ]);
  expect(failures.map(({ project, cause, runs }) => [project, cause, runs.map(({ id }) => id).join('')])).toEqual([
    ['digits', 'exit code 1', 'ac'],
    ['faces', 'exit code 1', 'b'],
    ['digits', 'SIGKILL, out of memory', 'd'],
    ['digits', 'No end was recorded: the monitor or its machine stopped reporting.', 'e'],
  ]);
  expect(new Set(failures.map(({ key }) => key)).size).toBe(4);
});
