import { expect, it } from 'vitest';
import { changesOf, formOf, tagsOf } from './editForm';

const run = { id: 'abc', name: 'abc', notes: 'so so', tags: ['a, b', 'c'], project: 'digits' };

it('a name that is the id is none', () => {
  expect(formOf(run).name).toBe('');
  expect(formOf({ ...run, name: 'seven' }).name).toBe('seven');
});

it('only what differs is sent', () => {
  const before = formOf(run);
  expect(changesOf(before, { ...before })).toEqual({});
  expect(changesOf(before, { ...before, name: ' seven ' })).toEqual({ name: 'seven' });
  expect(changesOf(before, { ...before, notes: '' })).toEqual({ notes: '' });
  expect(changesOf(before, { ...before, tags: 'a, b\nd' })).toEqual({ tags: ['a, b', 'd'] });
  expect(changesOf(before, { ...before, project: 'other ' })).toEqual({ project: 'other' });
});

it('tags are lines, each once', () => expect(tagsOf(' a \n\nb, c\na\n')).toEqual(['a', 'b, c']));
