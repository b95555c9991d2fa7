import { expect, test } from 'vitest';
import type { Failure } from '../../base/wire';
import { failedRanks, placeText } from './whyFailed';

const FAILURE: Failure = {
  state: 'failed',
  title: 'ValueError: no',
  exception: 'ValueError',
  message: 'no',
  exit_code: 1,
  signal: null,
  out_of_memory: false,
  host: 'node-1',
  rank: 3,
  time_ms: 1,
  lines: [],
  hint: null,
};

test('the process that failed first is named where there are several', () => {
  expect(placeText(FAILURE, true)).toBe('exit code 1 · rank 3 on node-1 failed first');
  expect(placeText(FAILURE, false)).toBe('exit code 1');
  expect(placeText({ ...FAILURE, rank: null }, true)).toBe('exit code 1 · first on node-1');
});

test('what the title says is not repeated', () => {
  expect(placeText({ ...FAILURE, title: 'Exit code 1' }, false)).toBe('');
  expect(placeText({ ...FAILURE, title: 'SIGKILL: out of memory', exit_code: null, signal: 9 }, false)).toBe('');
  expect(placeText({ ...FAILURE, exit_code: null, signal: 11 }, false)).toBe('SIGSEGV');
});

test('a rank has failed while others run', () => {
  expect(failedRanks([{ exit_code: 0, signal: null }, { exit_code: 1, signal: null }, { exit_code: null, signal: 9 }])).toBe(2);
  expect(placeText({ ...FAILURE, state: 'running' }, true)).toContain('other processes are still running');
});
