import { describe, expect, it } from 'vitest';
import { byUser, CLEARED, groupedByAuthor, isFiltered, nextPage, paramsOf, placeText, searched, sortedBy, toggled, wantedOf } from './runList';

const of = (text: string) => wantedOf(new URLSearchParams(text));

describe('an address', () => {
  it('without anything asks for the newest runs', () =>
    expect(paramsOf(of(''), null)).toEqual({
      project: null,
      text: null,
      state: [],
      entity: null,
      author: null,
      sort: 'started_ms',
      descending: 'true',
      deleted: null,
      limit: 100,
      after: null,
    }));
  it('says words, states, order, trash and page', () =>
    expect(paramsOf(of('q=resnet+a&state=failed,running&sort=run&order=up&trash=1&after=c2&page=3'), 'digits')).toEqual({
      project: 'digits',
      text: 'resnet a',
      state: ['running', 'failed'],
      entity: null,
      author: null,
      sort: 'name',
      descending: 'false',
      deleted: 'true',
      limit: 100,
      after: 'c2',
    }));
  it('may say what is not allowed', () => {
    const wanted = of('state=happy&sort=toString&page=x');
    expect([wanted.states, wanted.column, wanted.page]).toEqual([[], 'started', 1]);
    expect(of('page=7').page).toBe(1); // without a cursor there is only the first
    expect(isFiltered(wanted)).toBe(false);
  });
});

it('states are pressed and let go of', () => {
  expect(toggled(of(''), 'lost').state).toBe('lost');
  expect(toggled(of('state=lost'), 'running').state).toBe('running,lost');
  expect(toggled(of('state=running,lost'), 'lost').state).toBe('running');
});

describe('sorting', () => {
  it('of times begins with the newest, of names with A', () => {
    expect(sortedBy(of('sort=run'), 'duration')).toMatchObject({ sort: 'duration', order: null });
    expect(sortedBy(of(''), 'run')).toMatchObject({ sort: 'run', order: 'up' });
  });
  it('by the same column turns round', () => {
    expect(sortedBy(of(''), 'started')).toMatchObject({ sort: null, order: 'up' });
    expect(sortedBy(of('sort=run&order=up'), 'run')).toMatchObject({ sort: 'run', order: null });
  });
});

describe('authors', () => {
  it('filter, within a project of a team', () => {
    const wanted = of('author=ada&entity=vision');
    expect(paramsOf(wanted, 'digits')).toMatchObject({ author: 'ada', entity: 'vision' });
    expect(isFiltered(wanted)).toBe(true);
    expect(paramsOf(of('q=warm user:grace up'), null)).toMatchObject({ author: 'grace', text: 'warm up' });
    expect(paramsOf(of('q=user:grace'), null)).toMatchObject({ author: 'grace', text: null });
    expect(paramsOf(of('q=superuser:x'), null)).toMatchObject({ author: null, text: 'superuser:x' });
    expect(byUser('grace')).toMatchObject({ author: 'grace', after: null });
  });
  it('group, in the order of their names', () => {
    expect(paramsOf(of('by=author&sort=run'), null)).toMatchObject({ sort: 'author', descending: 'false' });
    expect(groupedByAuthor(true)).toMatchObject({ by: 'author', sort: null, after: null });
    expect(sortedBy(of('by=author'), 'run')).toMatchObject({ by: null, sort: 'run' });
  });
});

it('another list begins at its first page', () => {
  const wanted = of('after=c1&page=2');
  for (const changes of [searched('a'), toggled(wanted, 'lost'), sortedBy(wanted, 'run'), CLEARED]) {
    expect(changes).toMatchObject({ after: null, page: null });
  }
});

it('pages are counted', () => {
  expect(nextPage(1, 'c1')).toEqual({ after: 'c1', page: '2' });
  expect(nextPage(2, 'c2')).toEqual({ after: 'c2', page: '3' });
  expect(placeText(1, 100, 10_000)).toBe('1–100 of 10,000');
  expect(placeText(100, 100, 10_000)).toBe('9,901–10,000 of 10,000');
});
