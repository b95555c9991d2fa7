import { describe, expect, it, vi } from 'vitest';
import type { Account } from '../../base/api';
import type { Command } from './commands';

vi.stubGlobal('window', { location: { pathname: '/', search: '', hash: '' }, addEventListener: () => undefined });
const { matchingCommands, pagesOf, viewsHere } = await import('./commands');

const titles = (commands: readonly Command[]): string[] => commands.map(({ title }) => title);

describe('matching', () => {
  const all: Command[] = [
    { id: '1', title: 'GPU memory', note: 'chart' },
    { id: '2', title: 'Memory', note: 'chart' },
    { id: '3', title: 'Swap', keywords: ['memory'] },
    { id: '4', title: 'inmemory' },
  ];

  it('has every word, in any order and case', () => expect(titles(matchingCommands(all, 'MEMORY gpu', 9))).toEqual(['GPU memory']));
  it('puts titles that begin so first, then words that do', () =>
    expect(titles(matchingCommands(all, 'mem', 9))).toEqual(['Memory', 'GPU memory', 'Swap', 'inmemory']));
  it('has at most so many, and all without words', () => expect(titles(matchingCommands(all, ' ', 2))).toEqual(['GPU memory', 'Memory']));
  it('takes special characters as they are', () => expect(matchingCommands(all, '.*(', 9)).toEqual([]));
});

describe('what is offered', () => {
  const account = { name: 'ada', org_role: 'member', may: [], teams: [{ name: 'vision', display_name: 'Vision' }] } as unknown as Account;

  it('has no settings where nobody signs in', () => expect(pagesOf(null).every(({ id }) => id.startsWith('page '))).toBe(true));
  it('has what the user may open', () => {
    const ids = pagesOf(account).map(({ id }) => id);
    expect(ids).toContain('team vision members');
    expect(ids.some((id) => /^(organisation|billing) /.test(id))).toBe(false);
    const more = pagesOf({ ...account, org_role: 'admin', may: ['billing:read'] }).map(({ id }) => id);
    expect(more).toContain('organisation audit');
    expect(more).toContain('billing usage');
  });
  it('has each id once', () => {
    const ids = pagesOf({ ...account, org_role: 'admin', may: ['billing:read'] }).map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });
  it('has the views of the run or project that the page is about', () => {
    const route = { page: 'run', id: 'r', tab: 'system', entity: 'vision', project: 'digits', shared: false } as const;
    expect(viewsHere(route, null)).toEqual([]);
    expect(viewsHere(route, { id: 'r', entity: 'vision', project: 'digits' }).map(({ href }) => href)).toContain('/vision/digits/runs/r/logs');
    expect(titles(viewsHere({ page: 'project', entity: 'vision', project: 'digits', tab: 'runs' }, null))).toContain('Lost time');
  });
});
