import { describe, expect, it, vi } from 'vitest';

vi.stubGlobal('window', { location: { pathname: '/', search: '', hash: '' }, addEventListener: () => undefined });
const { compareHref, here, mlflowHref, parse, projectHref, runHref } = await import('./route.svelte');

describe('the view of an address', () => {
  it.each([
    ['/', { page: 'home' }],
    ['/runs', { page: 'runs', project: null }],
    ['/compare', { page: 'compare' }],
    ['/hosts/', { page: 'hosts' }],
    ['/hosts/node%2F1', { page: 'host', name: 'node/1' }],
    ['/projects/a%2Fb', { page: 'runs', project: 'a/b' }],
    ['/runs/abc/charts', { page: 'run', id: 'abc', tab: 'charts', entity: null, project: null, shared: false }],
    ['/runs/abc/toString', { page: 'unknown', path: '/runs/abc/toString' }],
    ['/runs/abc/logged', { page: 'run', id: 'abc', tab: 'charts', entity: null, project: null, shared: false }],
    ['/vision/a%20b/runs/abc', { page: 'run', id: 'abc', tab: null, entity: 'vision', project: 'a b', shared: false }],
    ['/vision/-/runs/abc/console', { page: 'run', id: 'abc', tab: 'logs', entity: 'vision', project: '-', shared: false }],
    ['/-/shared/runs/abc/console', { page: 'run', id: 'abc', tab: 'logs', entity: null, project: null, shared: true }],
    ['/-/shared', { page: 'shared' }],
    ['/-/embed/reports/12', { page: 'shared' }],
    ['/-/mlflow', { page: 'mlflow' }],
    ['/vision/digits', { page: 'project', entity: 'vision', project: 'digits', tab: 'overview' }],
    ['/vision/digits/workspace', { page: 'project', entity: 'vision', project: 'digits', tab: 'workspace' }],
    ['/vision/digits/runs', { page: 'project', entity: 'vision', project: 'digits', tab: 'runs' }],
    ['/vision/digits/settings/', { page: 'project', entity: 'vision', project: 'digits', tab: 'settings' }],
    ['/-/login', { page: 'entry', entry: 'login' }],
    ['/-/settings', { page: 'settings', tab: 'profile' }],
    ['/-/settings/keys', { page: 'settings', tab: 'keys' }],
    ['/-/organisation/audit', { page: 'organisation', tab: 'audit' }],
    ['/-/billing', { page: 'billing', tab: 'plan' }],
    ['/-/billing/usage', { page: 'billing', tab: 'usage' }],
    ['/-/settings/usage', { page: 'settings', tab: 'usage' }],
    ['/vision', { page: 'entity', name: 'vision' }],
    ['/vision/-/settings', { page: 'team', team: 'vision', tab: 'general' }],
    ['/vision/-/settings/members/', { page: 'team', team: 'vision', tab: 'members' }],
  ])('%s', (path, route) => {
    expect(parse(path)).toEqual(route);
  });

  it.each(['/-', '/-/none', '/-/login/more', '/-/settings/none', '/-/settings/keys/1', '/runs/abc/none', '/Vision', '/vision/-/none', '/vision/-/settings/none', '/vision/p/none', '/Vision/p', '/-/shared/runs', '/-/none/runs/abc', '/vision/p/runs/abc/none', '/vision/p/runs/abc/logged/more', '/%'])(
    'is unknown for %s',
    (path) => {
      expect(parse(path)).toEqual({ page: 'unknown', path });
    },
  );
});

describe('the address of a run', () => {
  const run = { id: 'a b', entity: 'vision', project: 'a/b' };

  it('has its team and project where there are accounts', () => {
    expect(runHref(run, 'charts')).toBe('/vision/a%2Fb/runs/a%20b/charts');
    expect(runHref({ ...run, entity: null })).toBe('/runs/a%20b');
    expect(projectHref('a/b', 'vision', 'runs')).toBe('/vision/a%2Fb/runs');
    expect(projectHref('a/b')).toBe('/projects/a%2Fb');
  });

  it('stays among the pages of guests for a guest', () => {
    here.path = '/-/shared';
    expect(runHref(run, 'charts')).toBe('/-/shared/runs/a%20b/charts');
    expect(projectHref('a/b', 'vision')).toBe('/-/shared');
    here.path = '/';
  });
});

describe('the comparison of runs', () => {
  const run = (id: string, entity: string | null): { id: string; entity: string | null } => ({ id, entity });

  it('names the team if there is one', () => {
    expect(compareHref([run('a', null), run('b', null)])).toBe('/compare?runs=a&runs=b');
    expect(compareHref([run('a', 'vision'), run('b', 'vision')])).toBe('/compare?runs=a&runs=b&entity=vision');
    expect(compareHref([run('a', 'vision'), run('b', 'speech')])).toBe('/compare?runs=a&runs=b');
  });
});

describe('a link of MLflow', () => {
  it.each([
    ['#/experiments/1/runs/0a1b', '/-/mlflow?experiment=1&run=0a1b'],
    ['#/experiments/1/runs/0a1b/model-metrics', '/-/mlflow?experiment=1&run=0a1b'],
    ['#/experiments/12', '/-/mlflow?experiment=12'],
    ['#token', null],
    ['', null],
  ])('%s', (hash, href) => {
    expect(mlflowHref(hash)).toBe(href);
  });
});
