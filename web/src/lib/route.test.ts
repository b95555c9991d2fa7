import { describe, expect, it, vi } from 'vitest';

vi.stubGlobal('window', { location: { pathname: '/', search: '', hash: '' }, addEventListener: () => undefined });
const { parse } = await import('./route.svelte');

describe('the view of an address', () => {
  it.each([
    ['/', { page: 'runs', project: null }],
    ['/projects/a%2Fb', { page: 'runs', project: 'a/b' }],
    ['/runs/abc/logged', { page: 'run', id: 'abc', tab: 'logged' }],
    ['/-/login', { page: 'entry', entry: 'login' }],
    ['/-/settings', { page: 'settings', tab: 'profile' }],
    ['/-/settings/keys', { page: 'settings', tab: 'keys' }],
    ['/-/organisation/audit', { page: 'organisation', tab: 'audit' }],
    ['/vision', { page: 'entity', name: 'vision' }],
    ['/vision/-/settings', { page: 'team', team: 'vision', tab: 'general' }],
    ['/vision/-/settings/members/', { page: 'team', team: 'vision', tab: 'members' }],
  ])('%s', (path, route) => {
    expect(parse(path)).toEqual(route);
  });

  it.each(['/-', '/-/none', '/-/login/more', '/-/settings/none', '/-/settings/keys/1', '/runs/abc/none', '/Vision', '/vision/-/none', '/vision/-/settings/none', '/vision/p', '/%'])(
    'is unknown for %s',
    (path) => {
      expect(parse(path)).toEqual({ page: 'unknown', path });
    },
  );
});
