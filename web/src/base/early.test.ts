import { expect, it } from 'vitest';
import { apiPath, runPath } from './api';
import { CARD_POINTS, EARLY_REQUESTS, earlyAddresses } from './early';

const early = (path: string, query = ''): string[] => earlyAddresses(path, new URLSearchParams(query));

it('requests what the page requests later, letter by letter', () => {
  for (const key of [{ id: 'a b', entity: null }, { id: 'abc', entity: 'vision lab' }]) {
    const path = key.entity === null ? `/runs/${encodeURIComponent(key.id)}/system` : `/${encodeURIComponent(key.entity)}/digits/runs/${key.id}/system`;
    expect(early(path)).toEqual([
      apiPath('about'),
      apiPath(runPath(key)),
      apiPath(runPath(key, '/headline')),
      apiPath(runPath(key, '/plan')),
      ...EARLY_REQUESTS.map((keys) => apiPath(runPath(key, '/metrics'), { keys: [...keys], max_points: CARD_POINTS })),
    ]);
  }
  expect(early('/runs/abc/logs', 'entity=lab')).toEqual([apiPath('about'), apiPath(runPath({ id: 'abc', entity: 'lab' }))]);
});

it('requests no values before the tab is known, and the names that its charts are of', () => {
  const key = { id: 'abc', entity: null };
  const first = [apiPath('about'), apiPath(runPath(key)), apiPath(runPath(key, '/headline')), apiPath(runPath(key, '/plan'))];
  expect(early('/runs/abc')).toEqual(first);
  expect(early('/runs/abc/charts')).toEqual([...first, apiPath(runPath(key, '/history/names'))]);
});

it('requests no points of all times for a part of them, and nothing for other views', () => {
  expect(early('/runs/abc/system', 'from=1&to=2')).toHaveLength(4);
  expect(early('/runs/abc/system', 'window=300000')).toHaveLength(4);
  expect(early('/runs/abc/system', 'replay=30')).toHaveLength(4);
  for (const path of ['/', '/runs', '/projects/runs', '/-/shared/runs/abc', '/lab/digits', '/a/b/c/runs/abc']) expect(early(path)).toEqual([]);
});
