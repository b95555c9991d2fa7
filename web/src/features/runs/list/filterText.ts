// The filter of runs as users type it: `state:crashed gpu.util<20 config.lr>=1e-3 or tag:base -note:debug two words`.
// The server reads and checks it. Here it is split into its parts, to colour, complete and edit it.

import type { State } from '../../../base/api';
import { isStatistic } from './systemStatistics';

export const STATES: readonly State[] = ['running', 'finished', 'failed', 'crashed', 'stopped', 'lost'];

/** Other names that the filter knows, and the beginnings of fields. */
const BEGINNINGS = ['config.', 'summary.', 'system.', 'cfg.', 'finding', 'verdict', 'lost_hours'];

/** Names before a colon, each with what it selects. */
export const TEXT_NAMES: Readonly<Record<string, string>> = {
  state: 'running, finished, failed, crashed, stopped or lost',
  tag: 'has this tag',
  host: 'ran on this host',
  project: 'is in this project',
  entity: 'belongs to this team or user',
  user: 'was started by this user',
  group: 'is in this group',
  job_type: 'has this job type',
  id: 'has this id',
  name: 'has this in its name, or matches with *',
  note: 'has this in its notes',
  device: 'used this device',
  sweep: 'belongs to this sweep',
};

/** What can be compared with a number or a text, besides `config.…`, `summary.…` and system statistics. */
export const COMPARED_NAMES: Readonly<Record<string, string>> = {
  duration: 'such as 2h or 30m',
  started: 'a date, such as 2026-11-01',
  last: 'when it was last heard of: a date',
  exit_code: 'a number',
  signal: 'a number',
};

/** Other spellings that the server accepts. */
const OTHER_NAMES: Readonly<Record<string, string>> = { author: 'user', notes: 'note', run: 'id', tags: 'tag' };

/** A part of the text to colour: from `start` to `end`. */
export interface Piece {
  kind: 'space' | 'word' | 'minus' | 'name' | 'operator' | 'value' | 'wrong';
  start: number;
  end: number;
}

export interface Term {
  start: number;
  end: number;
  negated: boolean;
  /** Null for words to search. */
  name: string | null;
  operator: string;
  values: string[];
  /** Where the part after the operator begins. */
  valueStart: number;
}

const BARE_NAME = /(?:[^\s":=<>!]|!(?!=))+/y;
const OPERATOR = /:|\s*(?:==|!=|<=|>=|=|<|>)\s*/y;
const QUOTED = /"(?:[^"\\]|\\.)*"?/sy;
const VALUE = /"(?:[^"\\]|\\.)*"?|[^\s,"][^\s,]*/sy;
const REST = /\S*/y;

/** What a pattern finds at a place; empty if nothing. */
function matchAt(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? '';
}

/** The terms of a filter, in the order of the text. Anything can be typed, so nothing is an error here. */
export function termsOf(text: string): Term[] {
  const terms: Term[] = [];
  let at = text.search(/\S/);
  while (at >= 0 && at < text.length) {
    const term = termAt(text, at);
    terms.push(term);
    const next = text.slice(term.end).search(/\S/);
    at = next < 0 ? -1 : term.end + next;
  }
  return terms;
}

function termAt(text: string, start: number): Term {
  const negated = /^-\S/.test(text.slice(start, start + 2));
  const from = negated ? start + 1 : start;
  let at = from;
  if (text[at] !== '"') {
    for (let part = matchAt(BARE_NAME, text, at); part; part = matchAt(text[at] === '"' ? QUOTED : BARE_NAME, text, at)) at += part.length;
  }
  const name = text.slice(from, at);
  const operator = name && matchAt(OPERATOR, text, at);
  if (!operator) {
    const end = at + (text[at] === '"' ? matchAt(QUOTED, text, at).length : 0);
    const stop = end + matchAt(REST, text, end).length;
    return { start, end: stop, negated, name: null, operator: '', values: [unquoted(text.slice(from, stop))], valueStart: from };
  }
  const valueStart = at + operator.length;
  const values: string[] = [];
  for (at = valueStart; at < text.length; at++) {
    const value = matchAt(VALUE, text, at);
    if (value) values.push(unquoted(value));
    at += value.length;
    if (text[at] !== ',') break;
  }
  const end = Math.min(text.length, at + matchAt(REST, text, at).length);
  return { start, end, negated, name: plainName(name), operator: operator.trim(), values, valueStart };
}

/** A name without its quotes: `config."my key"` is `config.my key`. */
const plainName = (name: string): string => name.replace(/"(?:[^"\\]|\\.)*"?/gs, unquoted);

function unquoted(text: string): string {
  if (!text.startsWith('"')) return text;
  try {
    return String(JSON.parse(text));
  } catch {
    return text.slice(1).replace(/"$/, ''); // it is still being typed
  }
}

/** A value as it is typed: in quotes where it has to be. */
export const quoted = (value: string): string =>
  value === '' || /[\s",*]/.test(value) ? JSON.stringify(value) : value;

/** Whether a name is one that the server knows or may know: fields and statistics have any name. */
const isName = (name: string): boolean =>
  Object.hasOwn(TEXT_NAMES, name) || Object.hasOwn(OTHER_NAMES, name) || Object.hasOwn(COMPARED_NAMES, name) || name.includes('.') || isStatistic(`system.${name}`);

/** Where the name of a term ends, before spaces and its operator. */
const nameEnd = (text: string, term: Term): number => term.start + text.slice(term.start, term.valueStart).trimEnd().length - term.operator.length - spacesBefore(text, term);

function spacesBefore(text: string, term: Term): number {
  const before = text.slice(term.start, term.valueStart).trimEnd().slice(0, -term.operator.length);
  return before.length - before.trimEnd().length;
}

/** The whole text as pieces without gaps. */
export function piecesOf(text: string): Piece[] {
  const pieces: Piece[] = [];
  let at = 0;
  const add = (kind: Piece['kind'], end: number): void => {
    if (end > at) pieces.push({ kind, start: at, end });
    at = end;
  };
  for (const term of termsOf(text)) {
    add('space', term.start);
    if (term.negated) add('minus', term.start + 1);
    if (term.name === null) add(isOr(text, term) ? 'operator' : 'word', term.end);
    else {
      add(isName(term.name) ? 'name' : 'wrong', nameEnd(text, term));
      add('operator', term.valueStart);
      const wrong = term.name === 'state' && term.values.some((value) => !STATES.includes(value as State));
      add(wrong ? 'wrong' : 'value', term.end);
    }
  }
  add('space', text.length);
  return pieces;
}

const isOr = (text: string, term: Term | undefined): boolean => term !== undefined && text.slice(term.start, term.end).toLowerCase() === 'or';

/** The terms `name:` that every run meets: not excluded ones, nor one of several with `or` between them. */
const required = (text: string, name: string): Term[] =>
  termsOf(text).filter((term, index, terms) => term.name === name && term.operator === ':' && !term.negated && !isOr(text, terms[index - 1]) && !isOr(text, terms[index + 1]));

/** The values of `name:` in a filter, without those that are excluded. */
export const valuesOf = (text: string, name: string): string[] => required(text, name).flatMap(({ values }) => values);

/** The filter with other values of `name:`; without the term if there are none. */
export function withValues(text: string, name: string, values: readonly string[]): string {
  let [changed, placed] = ['', values.length === 0];
  let at = 0;
  const condition = `${name}:${values.map(quoted).join(',')}`;
  for (const term of required(text, name)) {
    changed += text.slice(at, term.start) + (placed ? '' : condition);
    placed = true;
    at = term.end;
  }
  changed += text.slice(at);
  if (!placed) changed += ` ${condition}`;
  return changed.replace(/^\s+/, '').replace(/ {2,}(?=(?:[^"]*"[^"]*")*[^"]*$)/g, ' ').trimEnd();
}

/** The filter with one more term. */
export const withTerm = (text: string, term: string): string => [text.trim(), term].filter(Boolean).join(' ');

/** `config.lr` is 0.1, `tag` is a: the term that selects it; for no value, the term that excludes all. */
export function equalTerm(name: string, value: string | number | boolean | null): string {
  const [section, ...rest] = name.split('.');
  const field = rest.join('.');
  const written = /[\s":=<>!]/.test(field) ? `${section}.${JSON.stringify(field)}` : name;
  if (value === null) return `-${written}:*`;
  return `${written}=${typeof value === 'string' ? JSON.stringify(value) : value}`;
}

/** A number that is not complete yet: `1e-`, `0.`. */
const OPEN_NUMBER = /^[+-]?\d*\.?\d*(?:\.|e[+-]?|[+-])$/i;

/**
 * Whether the last term can only be the beginning of one: what would be searched for meanwhile is not what the user
 * means. `names`: fields and statistics by name.
 */
export function isBeginning(text: string, names: readonly string[]): boolean {
  const last = termsOf(text).at(-1);
  if (isOr(text, last)) return true;
  if (!last || last.end < text.length) return false;
  const typed = text.slice(last.start + (last.negated ? 1 : 0));
  if (typed === '' || typed === '-') return true;
  if ((typed.match(/(?<!\\)"/g)?.length ?? 0) % 2 === 1) return true;
  if (last.name === null) return !typed.startsWith('"') && isBeginningOfName(typed, names);
  if (last.values.length === 0 || typed.endsWith(',')) return true;
  const value = last.values.at(-1)!;
  if (last.name === 'state') return !STATES.some((state) => state === value) && STATES.some((state) => state.startsWith(value));
  return last.operator !== ':' && OPEN_NUMBER.test(value);
}

function isBeginningOfName(typed: string, allNames: readonly string[]): boolean {
  const names = [...Object.keys(TEXT_NAMES), ...Object.keys(COMPARED_NAMES), ...Object.keys(OTHER_NAMES), ...BEGINNINGS, ...allNames];
  return names.some((name) => name.startsWith(typed)) || BEGINNINGS.some((name) => name.endsWith('.') && typed.startsWith(name));
}
