// Regular expressions over names of metrics, matched in a time that is linear in the name: layouts come from others too,
// and the browser's own expressions can take exponential time.
//
// Supported: . [abc] [^a-z] \d \w \s \D \W \S * + ? {2,5} ( ) (?: ) | ^ $, and \ before any other sign.

import { SyntaxProblem } from './expression';
import { MAX_PATTERN } from './layout';

const MAX_INSTRUCTIONS = 500;
const MAX_REPETITIONS = 50;

type Test = (character: string) => boolean;

type Node =
  | { kind: 'empty' }
  | { kind: 'one'; test: Test }
  | { kind: 'start' | 'end' }
  | { kind: 'sequence' | 'either'; of: Node[] }
  | { kind: 'repeat'; of: Node; least: number; most: number };

type Instruction =
  | { kind: 'one'; test: Test }
  | { kind: 'split'; first: number; second: number }
  | { kind: 'start' | 'end' | 'found' };

const CLASSES: Record<string, Test> = {
  d: (c) => /[0-9]/.test(c),
  w: (c) => /\w/.test(c),
  s: (c) => /\s/.test(c),
  D: (c) => !/[0-9]/.test(c),
  W: (c) => !/\w/.test(c),
  S: (c) => !/\s/.test(c),
};

class Parser {
  readonly #characters: string[];
  #at = 0;

  constructor(text: string) {
    this.#characters = [...text];
  }

  whole(): Node {
    const pattern = this.#either();
    if (this.#at < this.#characters.length) throw new SyntaxProblem('this “)” closes nothing', this.#at);
    return pattern;
  }

  #either(): Node {
    const of = [this.#sequence()];
    while (this.#take('|')) of.push(this.#sequence());
    return of.length === 1 ? of[0]! : { kind: 'either', of };
  }

  #sequence(): Node {
    const of: Node[] = [];
    while (this.#at < this.#characters.length && !'|)'.includes(this.#characters[this.#at]!)) of.push(this.#repeated());
    return of.length === 0 ? { kind: 'empty' } : { kind: 'sequence', of };
  }

  #repeated(): Node {
    let of = this.#atom();
    for (;;) {
      const start = this.#at;
      const range = this.#range();
      if (!range) return of;
      if (of.kind === 'repeat' || of.kind === 'start' || of.kind === 'end') throw new SyntaxProblem('there is nothing to repeat', start);
      this.#take('?'); // how much is taken makes no difference to whether it matches
      of = { kind: 'repeat', of, ...range };
    }
  }

  #range(): { least: number; most: number } | null {
    if (this.#take('*')) return { least: 0, most: Infinity };
    if (this.#take('+')) return { least: 1, most: Infinity };
    if (this.#take('?')) return { least: 0, most: 1 };
    const start = this.#at;
    const match = /^\{(\d{1,4})(,(\d{0,4}))?\}/.exec(this.#characters.slice(start, start + 12).join(''));
    if (!match) return null;
    this.#at += match[0].length;
    const least = Number(match[1]);
    const most = match[2] === undefined ? least : match[3] ? Number(match[3]) : Infinity;
    if (most < least || least > MAX_REPETITIONS || (most !== Infinity && most > MAX_REPETITIONS)) {
      throw new SyntaxProblem(`expected {least,most} with numbers up to ${MAX_REPETITIONS}`, start);
    }
    return { least, most };
  }

  #atom(): Node {
    const start = this.#at;
    const character = this.#characters[this.#at++]!;
    if (character === '(') return this.#group(start);
    if (character === '[') return { kind: 'one', test: this.#class(start) };
    if (character === '.') return { kind: 'one', test: () => true };
    if (character === '^') return { kind: 'start' };
    if (character === '$') return { kind: 'end' };
    if (character === '\\') return { kind: 'one', test: this.#escaped(start) };
    if ('*+?'.includes(character)) throw new SyntaxProblem('there is nothing to repeat', start);
    return { kind: 'one', test: (c) => c === character };
  }

  #group(start: number): Node {
    if (this.#take('?') && !this.#take(':')) throw new SyntaxProblem('expected (?:…); others are not supported', start);
    const pattern = this.#either();
    if (!this.#take(')')) throw new SyntaxProblem('this “(” is not closed', start);
    return pattern;
  }

  #escaped(start: number): Test {
    const character = this.#characters[this.#at++];
    if (character === undefined) throw new SyntaxProblem('expected a character after “\\”', start);
    const test = CLASSES[character];
    if (test) return test;
    if (/[\p{L}\p{N}]/u.test(character)) throw new SyntaxProblem(`“\\${character}” is not supported`, start);
    return (c) => c === character;
  }

  #class(start: number): Test {
    const negated = this.#take('^');
    const tests: Test[] = [];
    for (let first = true; first || this.#characters[this.#at] !== ']'; first = false) {
      const from = this.#characters[this.#at++];
      if (from === undefined) throw new SyntaxProblem('this “[” is not closed', start);
      if (from === '\\') tests.push(this.#escaped(this.#at - 1));
      else if (this.#characters[this.#at] === '-' && ![']', undefined].includes(this.#characters[this.#at + 1])) {
        const to = this.#characters[this.#at + 1]!;
        this.#at += 2;
        if (to < from) throw new SyntaxProblem(`the range ${from}-${to} is empty`, this.#at - 3);
        tests.push((c) => c >= from && c <= to);
      } else tests.push((c) => c === from);
    }
    this.#at += 1;
    return (c) => tests.some((test) => test(c)) !== negated;
  }

  #take(character: string): boolean {
    if (this.#characters[this.#at] !== character) return false;
    this.#at += 1;
    return true;
  }
}

/** Instructions of a machine that follows all ways to match at once. */
class Program {
  readonly steps: Instruction[] = [];

  constructor(root: Node) {
    this.#write(root);
    this.#add({ kind: 'found' });
  }

  #add(step: Instruction): number {
    if (this.steps.length >= MAX_INSTRUCTIONS) throw new SyntaxProblem('the pattern repeats too much', 0);
    return this.steps.push(step) - 1;
  }

  #write(node: Node): void {
    if (node.kind === 'one' || node.kind === 'start' || node.kind === 'end') this.#add(node);
    else if (node.kind === 'sequence') for (const part of node.of) this.#write(part);
    else if (node.kind === 'either') this.#writeEither(node.of);
    else if (node.kind === 'repeat') this.#writeRepeat(node);
  }

  #writeEither([first, ...others]: readonly Node[]): void {
    if (others.length === 0) {
      this.#write(first!);
      return;
    }
    const split = this.#split();
    this.#write(first!);
    const over = this.#split();
    split.second = this.steps.length;
    this.#writeEither(others);
    over.first = over.second = this.steps.length;
  }

  #writeRepeat({ of, least, most }: { of: Node; least: number; most: number }): void {
    for (let i = 0; i < least; i++) this.#write(of);
    if (most === Infinity) {
      const at = this.steps.length;
      const split = this.#split();
      this.#write(of);
      const back = this.#split();
      back.first = back.second = at;
      split.second = this.steps.length;
      return;
    }
    const splits = Array.from({ length: most - least }, () => {
      const split = this.#split();
      this.#write(of);
      return split;
    });
    for (const split of splits) split.second = this.steps.length;
  }

  /** A choice between the next step and one that is known later. */
  #split(): { kind: 'split'; first: number; second: number } {
    const step = { kind: 'split' as const, first: this.steps.length + 1, second: -1 };
    this.#add(step);
    return step;
  }
}

/** Whether a name matches a pattern somewhere, as `RegExp.test` does. Throws a SyntaxProblem. */
export function parsePattern(text: string): (name: string) => boolean {
  if (text.length > MAX_PATTERN) throw new SyntaxProblem(`expected at most ${MAX_PATTERN} characters`, MAX_PATTERN);
  const { steps } = new Program(new Parser(text).whole());
  return (name) => matches(steps, [...name]);
}

function matches(steps: readonly Instruction[], characters: readonly string[]): boolean {
  let active = new Set<number>();
  for (let at = 0; at <= characters.length; at++) {
    active.add(0); // a match may begin anywhere
    if (reaches(steps, active, at === 0, at === characters.length)) return true;
    const next = new Set<number>();
    for (const index of active) {
      const step = steps[index]!;
      if (step.kind === 'one' && at < characters.length && step.test(characters[at]!)) next.add(index + 1);
    }
    active = next;
  }
  return false;
}

/** Add all steps that are reached without another character; true if one of them is the end of the pattern. */
function reaches(steps: readonly Instruction[], active: Set<number>, atStart: boolean, atEnd: boolean): boolean {
  for (const index of active) {
    const step = steps[index]!; // a set gives what is added to it meanwhile, too
    if (step.kind === 'found') return true;
    if (step.kind === 'split') active.add(step.first).add(step.second);
    else if ((step.kind === 'start' && atStart) || (step.kind === 'end' && atEnd)) active.add(index + 1);
  }
  return false;
}
