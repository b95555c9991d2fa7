// What can be typed next in the filter of runs.

import { COMPARED_NAMES, quoted, STATES, termsOf, TEXT_NAMES } from './filterText';

export interface Suggestion {
  /** What replaces the text from `start` to `end`. */
  text: string;
  start: number;
  end: number;
  hint: string;
}

/** What is known of the runs: fields and statistics by name, and values of `tag:`, `host:` … */
export interface Known {
  fields: readonly string[];
  values: Readonly<Record<string, readonly string[]>>;
}

const MOST = 12;

/** Suggestions for the term at the caret, the best first. */
export function suggestions(text: string, caret: number, words: Known): Suggestion[] {
  const term = termsOf(text).find(({ start, end }) => start <= caret && caret <= end);
  if (term === undefined) return names('', caret, caret, words);
  const from = term.start + (term.negated ? 1 : 0);
  if (term.name === null) return text[from] === '"' ? [] : names(text.slice(from, caret), from, term.end, words);
  if (caret < term.valueStart) return names(text.slice(from, caret), from, term.valueStart, words);
  if (term.operator !== ':') return [];
  return values(text, term.name, term.valueStart, term.end, caret, words);
}

function names(typed: string, start: number, end: number, allWords: Known): Suggestion[] {
  const words: [string, string][] = [
    ...Object.entries(TEXT_NAMES).map(([name, hint]): [string, string] => [`${name}:`, hint]),
    ...Object.entries(COMPARED_NAMES).map(([name, hint]): [string, string] => [name, hint]),
    ...allWords.fields.map((name): [string, string] => [name, '']),
  ];
  return best(words, typed.replace(/^cfg\./, 'config.')).map(([text, hint]) => ({ text, start, end, hint }));
}

function values(text: string, name: string, from: number, end: number, caret: number, words: Known): Suggestion[] {
  const start = Math.max(from, text.lastIndexOf(',', caret - 1) + 1);
  const comma = text.indexOf(',', caret);
  const stop = comma < 0 || comma > end ? end : comma;
  const offered = name === 'state' ? STATES : Object.hasOwn(words.values, name) ? words.values[name]! : [];
  const typed = text.slice(start, caret).replace(/^"/, '');
  return best(offered.map((value): [string, string] => [value, '']), typed)
    .filter(([value]) => quoted(value) !== text.slice(start, stop))
    .map(([value]) => ({ text: quoted(value), start, end: stop, hint: '' }));
}

/** Words that begin with what was typed, then those that contain it. */
function best(words: readonly [string, string][], typed: string): [string, string][] {
  const prefix = typed.toLowerCase();
  const begins = words.filter(([word]) => word.toLowerCase().startsWith(prefix));
  const contains = prefix === '' ? [] : words.filter(([word]) => word.toLowerCase().indexOf(prefix) > 0);
  return [...begins, ...contains].slice(0, MOST);
}

/** The text with a suggestion taken, and where the caret is then. */
export function completed(text: string, { text: word, start, end }: Suggestion): { text: string; caret: number } {
  const open = /^[\s,]/.test(text.slice(end));
  const isName = word.endsWith(':') || (word.includes('.') && !text.slice(0, start).endsWith(':'));
  const added = isName || open ? word : `${word} `;
  return { text: text.slice(0, start) + added + text.slice(end), caret: start + added.length };
}
