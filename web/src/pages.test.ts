import { expect, it } from 'vitest';
import { home, pageOf, run, runs, shared, workspace } from './pages';

it.each([
  ['/', home],
  ['/runs', runs],
  ['/runs/abc', run],
  ['/runs/abc/charts', run],
  ['/vision/detection/runs/abc', run],
  ['/projects/vision', workspace],
  ['/-/shared/runs/abc', shared],
  ['/-/settings', null],
  ['/hosts', null],
])('the entry loads the page of %s', (path, page) => {
  expect(pageOf(path)).toBe(page);
});
