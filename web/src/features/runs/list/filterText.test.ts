import { describe, expect, it } from 'vitest';
import { equalTerm, isBeginning, piecesOf, quoted, termsOf, valuesOf, withTerm, withValues } from './filterText';

const read = (text: string) => termsOf(text).map(({ negated, name, operator, values }) => [negated ? '-' : '', name, operator, ...values]);
const painted = (text: string) => piecesOf(text).filter(({ kind }) => kind !== 'space').map(({ kind, start, end }) => [kind, text.slice(start, end)]);

describe('the terms of a filter', () => {
  it('are words, names with values, and comparisons', () =>
    expect(read('resnet state:failed,crashed config.lr>=1e-3 -tag:debug "two words"')).toEqual([
      ['', null, '', 'resnet'],
      ['', 'state', ':', 'failed', 'crashed'],
      ['', 'config.lr', '>=', '1e-3'],
      ['-', 'tag', ':', 'debug'],
      ['', null, '', 'two words'],
    ]));
  it('have spaces and commas in quotes, and spaces beside an operator', () => {
    expect(read('tag:"a, b",c d')).toEqual([['', 'tag', ':', 'a, b', 'c'], ['', null, '', 'd']]);
    expect(read('config.lr > 0.1 x')).toEqual([['', 'config.lr', '>', '0.1'], ['', null, '', 'x']]);
    expect(read('config."my key"="a \\"b\\""')).toEqual([['', 'config.my key', '=', 'a "b"']]);
  });
  it('are found in text that is still being typed', () => {
    for (const text of ['', ' ', '-', '"', 'state:', 'tag:"a', 'a"b', ',', ':', '>=', '- x', 'state:a,', '"a"b', 'config."', '!!', '\\"'])
      expect(termsOf(text).every(({ start, end }, i, all) => start < end && start >= (all[i - 1]?.end ?? 0)), text).toBe(true);
    expect(read('state:failed,')).toEqual([['', 'state', ':', 'failed']]);
  });
});

describe('colours', () => {
  it('cover the whole text', () => {
    const text = ' -tag:a  config.lr >= 1 bad:x state:happy "q';
    expect(piecesOf(text).map(({ start, end }) => text.slice(start, end)).join('')).toBe(text);
  });
  it('show what is wrong', () =>
    expect(painted('-gpu.util<20 colour:red state:happy x')).toEqual([
      ['minus', '-'],
      ['name', 'gpu.util'],
      ['operator', '<'],
      ['value', '20'],
      ['wrong', 'colour'],
      ['operator', ':'],
      ['value', 'red'],
      ['name', 'state'],
      ['operator', ':'],
      ['wrong', 'happy'],
      ['word', 'x'],
    ]));
});

describe('values of a name', () => {
  it('beside `or` are none that every run has', () => {
    expect(valuesOf('state:failed or tag:a tag:b', 'tag')).toEqual(['b']);
    expect(withValues('state:failed or tag:a tag:b', 'state', ['lost'])).toBe('state:failed or tag:a tag:b state:lost');
    expect(painted('a OR or "or" orb').map(([kind]) => kind)).toEqual(['word', 'operator', 'operator', 'word', 'word']);
    expect([isBeginning('a or ', []), isBeginning('a or tag:b', [])]).toEqual([true, false]);
  });
  it('are read and replaced where they are', () => {
    expect(valuesOf('a state:failed b state:lost -state:running', 'state')).toEqual(['failed', 'lost']);
    expect(withValues('a state:failed b', 'state', ['lost', 'running'])).toBe('a state:lost,running b');
    expect(withValues('a', 'tag', ['x y'])).toBe('a tag:"x y"');
    expect(withValues('a state:failed "b  c"', 'state', [])).toBe('a "b  c"');
    expect(withValues('-state:lost', 'state', ['failed'])).toBe('-state:lost state:failed');
  });
  it('are quoted where they have to be', () => expect(['a', 'a b', 'a,b', '', '*', 'say "hi"'].map(quoted)).toEqual(['a', '"a b"', '"a,b"', '""', '"*"', '"say \\"hi\\""']));
});

it('a group is selected by a term', () => {
  expect(equalTerm('config.lr', 0.001)).toBe('config.lr=0.001');
  expect(equalTerm('config.name', '1')).toBe('config.name="1"');
  expect(equalTerm('config.my key', true)).toBe('config."my key"=true');
  expect(equalTerm('tag', 'a*')).toBe('tag="a*"');
  expect(equalTerm('config.lr', null)).toBe('-config.lr:*');
  expect(withTerm(' a ', 'tag:b')).toBe('a tag:b');
});

describe('a filter that is being typed', () => {
  const known = ['config.lr', 'system.gpu'];
  it('waits for the rest of a term', () => {
    for (const text of ['s', 'sta', 'state', 'state:', 'state:fai', 'state:failed,', 'config.', 'config.l', 'config.lr', 'config.lr>', 'config.lr>1e-', 'config.lr>-', 'config.lr<0.', 'tag:"two', 'x -', '-no', 'cfg.lr', 'summary.anything'])
      expect(isBeginning(text, known), text).toBe(true);
  });
  it('does not wait where the last term is complete', () => {
    for (const text of ['', 'resnet', 'state:failed', 'state:failed,crashed', 'config.lr>1e-3', 'config.lr>1', 'tag:"two words"', 'sta ', 'state:fai x1', '"quoted"', 'state:happy'])
      expect(isBeginning(text, known), text).toBe(false);
  });
});
