// Expressions of metrics, such as `gpu.0.powerWatts / gpu.0.gpu`.
//
//   sum     = product { ("+" | "-") product }
//   product = sign { ("*" | "/") sign }
//   sign    = "-" sign | power
//   power   = atom [ "^" sign ]
//   atom    = number | metric | function "(" sum { "," sum } ")" | "(" sum ")"
//   metric  = [ "logged:" | "system:" ] ( name | '"' any text '"' )
//
// A name has letters, digits and "_" in parts joined by "."; a part may be "*", which stands for each device. Any other
// name needs quotes: `"train/loss"`. Without a prefix, a name is that of a logged metric if one of the runs logged it,
// and otherwise that of a system metric.
//
// A gap makes the result a gap, and so does what has no finite value: a division by zero, the root of a negative number.

import { MAX_EXPRESSION } from './layout';

import type { Value } from '../../../base/api';


export type Source = 'logged' | 'system';

export interface MetricName {
  name: string;
  /** null: whichever has it. */
  source: Source | null;
}

export interface Expression {
  /** Each metric once, in the order in which the expression names them. */
  metrics: readonly MetricName[];
  /** The expression is this metric and nothing else. */
  plain: boolean;
  /** The result of values of the metrics, in their order. */
  value: (values: readonly Value[]) => Value;
  /** The unit of the result: empty where it has none, or it is not known. */
  unit: (units: readonly string[]) => string;
}

/** What is wrong with an expression or a pattern. `at`: the first character that is wrong, from 0. */
export class SyntaxProblem extends Error {
  constructor(
    message: string,
    readonly at: number,
  ) {
    super(`${message} (at character ${at + 1})`);
  }
}

type Node =
  | { kind: 'number'; value: number }
  | { kind: 'metric'; index: number }
  | { kind: 'apply'; function: string; of: Node[] };

/** Functions by name: how many arguments each takes, and what it gives. */
const FUNCTIONS: Record<string, { least: number; most: number; of: (...values: number[]) => number }> = {
  abs: { least: 1, most: 1, of: Math.abs },
  sqrt: { least: 1, most: 1, of: Math.sqrt },
  exp: { least: 1, most: 1, of: Math.exp },
  log: { least: 1, most: 1, of: Math.log },
  log2: { least: 1, most: 1, of: Math.log2 },
  log10: { least: 1, most: 1, of: Math.log10 },
  min: { least: 2, most: 8, of: Math.min },
  max: { least: 2, most: 8, of: Math.max },
};

export const FUNCTION_NAMES: readonly string[] = Object.keys(FUNCTIONS);

const OPERATORS: Record<string, (a: number, b: number) => number> = {
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
  '*': (a, b) => a * b,
  '/': (a, b) => a / b,
  '^': (a, b) => a ** b,
};

const NAME = /[\p{L}_][\p{L}\p{N}_]*(?:\.(?:[\p{L}\p{N}_]+|\*(?![\p{L}\p{N}_])))*/uy;
const NUMBER = /(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?/y;
const QUOTED = /"((?:[^"\\]|\\["\\])*)"/y;
const SPACE = /\s*/y;
const PREFIXES: readonly Source[] = ['logged', 'system'];

class Parser {
  readonly metrics: MetricName[] = [];
  #at = 0;

  constructor(private readonly text: string) {}

  whole(): Node {
    const sum = this.#sum();
    if (this.#next() !== '') throw this.#problem('expected an operator: + - * / ^');
    return sum;
  }

  #sum(): Node {
    let left = this.#product();
    for (let sign = this.#take('+-'); sign; sign = this.#take('+-')) left = apply(sign, left, this.#product());
    return left;
  }

  #product(): Node {
    let left = this.#sign();
    for (let sign = this.#take('*/'); sign; sign = this.#take('*/')) left = apply(sign, left, this.#sign());
    return left;
  }

  #sign(): Node {
    return this.#take('-') ? apply('-', { kind: 'number', value: 0 }, this.#sign()) : this.#power();
  }

  #power(): Node {
    const base = this.#atom();
    return this.#take('^') ? apply('^', base, this.#sign()) : base;
  }

  #atom(): Node {
    if (this.#take('(')) return this.#closed(this.#sum());
    const start = this.#at;
    const number = this.#match(NUMBER);
    if (number) {
      if (this.#match(NAME)) throw new SyntaxProblem('expected an operator; names that begin with a digit need quotes', start);
      return { kind: 'number', value: Number(number) };
    }
    const quoted = this.#quoted();
    if (quoted !== null) return this.#metric(quoted, null);
    const name = this.#match(NAME);
    if (name === null) throw this.#problem('expected a metric, a number or “(”');
    const source = PREFIXES.find((prefix) => prefix === name);
    if (source && this.#take(':')) return this.#metric(this.#quoted() ?? this.#match(NAME), source);
    if (this.#take('(')) return this.#call(name, start);
    return this.#metric(name, null);
  }

  #call(name: string, start: number): Node {
    const definition = Object.hasOwn(FUNCTIONS, name) ? FUNCTIONS[name]! : null;
    if (!definition) throw new SyntaxProblem(`“${name}” is not a function; expected ${FUNCTION_NAMES.join(', ')}`, start);
    const of = [this.#sum()];
    while (this.#take(',')) of.push(this.#sum());
    if (of.length < definition.least || of.length > definition.most) {
      const expected = definition.least === definition.most ? `${definition.least}` : `${definition.least} to ${definition.most}`;
      throw new SyntaxProblem(`${name} takes ${expected} value${expected === '1' ? '' : 's'}, not ${of.length}`, start);
    }
    return this.#closed({ kind: 'apply', function: name, of });
  }

  #closed(node: Node): Node {
    if (!this.#take(')')) throw this.#problem('expected “)”');
    return node;
  }

  #metric(name: string | null, source: Source | null): Node {
    if (!name) throw this.#problem('expected the name of a metric');
    let index = this.metrics.findIndex((metric) => metric.name === name && metric.source === source);
    if (index < 0) index = this.metrics.push({ name, source }) - 1;
    return { kind: 'metric', index };
  }

  #quoted(): string | null {
    if (this.#next() !== '"') return null;
    const text = this.#match(QUOTED);
    if (text === null) throw this.#problem('the quotes are not closed');
    return text.slice(1, -1).replace(/\\(["\\])/g, '$1');
  }

  /** The next character that is not a space; empty at the end. */
  #next(): string {
    this.#match(SPACE);
    return this.text[this.#at] ?? '';
  }

  #take(characters: string): string | null {
    const next = this.#next();
    if (next === '' || !characters.includes(next)) return null;
    this.#at += 1;
    return next;
  }

  #match(pattern: RegExp): string | null {
    if (pattern !== SPACE) this.#match(SPACE);
    pattern.lastIndex = this.#at;
    const token = pattern.exec(this.text)?.[0] ?? null;
    if (token !== null) this.#at += token.length;
    return token;
  }

  #problem(expected: string): SyntaxProblem {
    const next = this.#next();
    return new SyntaxProblem(`${expected}, found ${next === '' ? 'the end' : `“${next}”`}`, this.#at);
  }
}

const apply = (name: string, ...of: Node[]): Node => ({ kind: 'apply', function: name, of });

/** The expression that a text is. Throws a SyntaxProblem. */
export function parseExpression(text: string): Expression {
  if (text.length > MAX_EXPRESSION) throw new SyntaxProblem(`expected at most ${MAX_EXPRESSION} characters`, MAX_EXPRESSION);
  const parser = new Parser(text);
  const root = parser.whole();
  const { metrics } = parser;
  if (metrics.length === 0) throw new SyntaxProblem('expected at least one metric', 0);
  return {
    metrics,
    plain: root.kind === 'metric',
    value: (values) => finite(valueOf(root, values)),
    unit: (units) => unitOf(root, units) ?? '',
  };
}

const finite = (value: Value): Value => (value !== null && Number.isFinite(value) ? value : null);

function valueOf(node: Node, values: readonly Value[]): Value {
  if (node.kind === 'number') return node.value;
  if (node.kind === 'metric') return values[node.index] ?? null;
  const of: number[] = [];
  for (const part of node.of) {
    const value = finite(valueOf(part, values));
    if (value === null) return null;
    of.push(value);
  }
  const operator = OPERATORS[node.function];
  return operator ? operator(of[0]!, of[1]!) : FUNCTIONS[node.function]!.of(...of);
}

/** The unit of a part; '' for a plain number, null if it is not known. */
function unitOf(node: Node, units: readonly string[]): string | null {
  if (node.kind === 'number') return '';
  if (node.kind === 'metric') return (units[node.index] ?? '').replace(/^1$/, '');
  const [a, b] = node.of.map((part) => unitOf(part, units));
  if (a === undefined || a === null || b === null) return null;
  if (b === undefined) return node.function === 'abs' ? a : null;
  if (node.function === '*') return a && b ? null : a || b;
  if (node.function === '/') return a === b ? '' : b === '' ? a : a === '' ? null : `${a}/${b}`;
  if (node.function === '^') return a === '' ? '' : null;
  const isNegated = node.function === '-' && node.of[0]!.kind === 'number' && node.of[0]!.value === 0;
  return a === b || isNegated ? b : null;
}

/** A name of a metric as an expression: in quotes where it needs them. */
export function nameText(name: string, source: Source | null = null): string {
  NAME.lastIndex = 0;
  const bare = NAME.exec(name)?.[0] === name && !(PREFIXES as readonly string[]).includes(name);
  const text = bare ? name : `"${name.replace(/["\\]/g, '\\$&')}"`;
  return source ? `${source}:${text}` : text;
}
