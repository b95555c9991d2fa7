import { describe, expect, it } from 'vitest';
import { completed, suggestions, type Known } from './completion';

const KNOWN: Known = { fields: ['config.lr', 'config.layers', 'summary.loss'], values: { tag: ['baseline', 'two words'] } };
/** The suggestions where the text has a `|`. */
const at = (text: string) => suggestions(text.replace('|', ''), text.indexOf('|'), KNOWN);
const take = (text: string, word: string) => {
  const completion = at(text).find((suggestion) => suggestion.text === word)!;
  const { text: changed, caret } = completed(text.replace('|', ''), completion);
  return `${changed.slice(0, caret)}|${changed.slice(caret)}`;
};

describe('suggestions', () => {
  it('are names at first', () => expect(at('|').map(({ text }) => text)).toEqual(expect.arrayContaining(['state:', 'tag:'])));
  it('of names begin with what was typed, or contain it', () => {
    expect(at('x conf|').map(({ text }) => text)).toEqual(['config.lr', 'config.layers']);
    expect(at('-lo|').map(({ text }) => text)).toEqual(['summary.loss']);
    expect(at('cfg.l|').map(({ text }) => text)).toEqual(['config.lr', 'config.layers']);
  });
  it('are values after a colon, for each alternative', () => {
    expect(at('state:fa|').map(({ text }) => text)).toEqual(['failed']);
    expect(at('tag:baseline,t|').map(({ text }) => text)).toEqual(['"two words"']);
    expect(at('host:|')).toEqual([]);
    expect(at('config.lr>=|')).toEqual([]);
  });
});

it('a suggestion replaces what was typed', () => {
  expect(take('x st|', 'state:')).toBe('x state:|');
  expect(take('state:fa|', 'failed')).toBe('state:failed |');
  expect(take('state:failed,l| y', 'lost')).toBe('state:failed,lost| y');
  expect(take('-conf|', 'config.lr')).toBe('-config.lr|');
});
