import { describe, expect, it } from 'vitest';
import { changesFor, joined, listParams, moved, shifted, sortedBy, split, stateToggled, userToggled, viewOf, type RunsView } from './view';

const of = (text: string): RunsView => viewOf(new URLSearchParams(text));
/** The address of a view. */
const addressOf = (view: RunsView): string =>
  new URLSearchParams(Object.entries(changesFor(view)).filter((entry): entry is [string, string] => entry[1] !== null)).toString();

describe('a view', () => {
  it('is in the address as a whole', () => {
    const view: RunsView = {
      filter: 'state:failed "two words"',
      sort: [{ name: 'summary.loss', descending: true }, { name: 'name', descending: false }],
      columns: ['state', 'config.a,b', 'config.100%'],
      pinned: ['state'],
      by: ['config.lr', 'tag'],
      open: ['[0.1,"a"]'],
      trash: true,
      total: 'sum',
      widths: { name: 400, 'config.a:b,c': 90 },
    };
    expect(of(addressOf(view))).toEqual(view);
  });
  it('without anything has the order that suits the runs, and leaves the address empty', () => {
    expect(of('')).toEqual({ filter: '', sort: null, columns: null, pinned: [], by: [], open: [], trash: false, total: 'mean', widths: {} });
    expect(addressOf(of(''))).toBe('');
    expect(of('columns=').columns).toEqual([]); // chosen: none but the name
    expect(of(addressOf({ ...of(''), columns: [] })).columns).toEqual([]);
  });
  it('has no columns that are too narrow or too wide', () => {
    expect(of('widths=name:1,state:99999,tags:wide,host:120.4').widths).toEqual({ name: 60, state: 800, host: 120 });
  });
  it('of an older address is the same', () => {
    expect(of('q=resnet+a&state=failed,happy,running&author=ada').filter).toBe('resnet a state:failed,running user:ada');
  });
});

it('names with commas survive in a list', () => {
  for (const names of [['a', 'b,c'], ['%2C', '100%'], ['%']]) expect(split(joined(names))).toEqual(names);
});

describe('sorting', () => {
  const name = { name: 'name', descending: false };
  const loss = { name: 'summary.loss', descending: true };
  it('by one column reverses it at the second click', () => {
    expect(sortedBy([loss], 'name', false, false)).toEqual([name]);
    expect(sortedBy([name], 'name', false, false)).toEqual([{ ...name, descending: true }]);
  });
  it('by several adds, reverses and takes out', () => {
    expect(sortedBy([loss], 'name', false, true)).toEqual([loss, name]);
    expect(sortedBy([loss, name], 'name', false, true)).toEqual([loss, { ...name, descending: true }]);
    expect(sortedBy([loss, { ...name, descending: true }], 'name', false, true)).toEqual([loss]);
  });
});

it('columns are moved', () => {
  expect(moved(['a', 'b', 'c'], 'c', 'a', false)).toEqual(['c', 'a', 'b']);
  expect(moved(['a', 'b', 'c'], 'a', 'b', true)).toEqual(['b', 'a', 'c']);
  expect(shifted(['a', 'b', 'c'], 'b', 1)).toEqual(['a', 'c', 'b']);
  expect(shifted(['a', 'b', 'c'], 'a', -1)).toEqual(['a', 'b', 'c']);
});

it('the server is asked for what the columns show', () =>
  expect(listParams(of('q=x&sort=-summary.loss,name'), { project: 'digits', entity: null }, ['state', 'config.lr', 'system.gpu', 'sparkline.loss'], ['tag="a"'])).toEqual({
    project: 'digits',
    entity: null,
    filter: 'x tag="a"',
    deleted: null,
    sort: '-summary.loss,name',
    descending: null,
    columns: ['config.lr', 'system.gpu'],
    sparklines: ['loss'],
  }));

it('buttons change the filter', () => {
  expect(stateToggled('x', 'lost')).toBe('x state:lost');
  expect(stateToggled('x state:lost', 'running')).toBe('x state:running,lost');
  expect(stateToggled('state:lost x', 'lost')).toBe('x');
  expect(userToggled('user:ada', 'ada')).toBe('');
  expect(userToggled('', 'ada')).toBe('user:ada');
});
