import { expect, it } from 'vitest';
import { olderServerText } from './olderServer';

it.each([
  ['/api/v1/hosts?sort=name', 'Hosts: the server is older'],
  ['/api/v1/overlay/plan?runs=a', 'Charts of several runs: the server is older'],
  ['/api/v1/runs/a/media?limit=200', 'Media: the server is older'],
  ['/api/v1/runs/groups?by=project', 'Groups of runs: the server is older'],
  ['/api/v1/something/new', 'The server is older'],
])('%s: %s', (url, text) => {
  expect(olderServerText(url).startsWith(text)).toBe(true);
});
