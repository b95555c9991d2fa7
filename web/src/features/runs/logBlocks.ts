// Matching lines of a run's output with those around them, as blocks of lines that follow each other.

import type { ConsoleMatch } from '../../base/wire';

export interface BlockLine {
  number: number;
  text: string;
  /** Its place among the matches; null: it is only near one. */
  match: number | null;
}

export interface LogBlock {
  host: string;
  rank: number | null;
  lines: BlockLine[];
}

/** The blocks of matches, in their order. Those of one process whose lines follow each other are one block. */
export function blocksOf(matches: readonly ConsoleMatch[]): LogBlock[] {
  const blocks: LogBlock[] = [];
  matches.forEach(({ host, rank, number, text, before, after }, match) => {
    const last = blocks[blocks.length - 1];
    const first = number - before.length;
    let block = last;
    if (!last || last.host !== host || last.rank !== rank || last.lines.at(-1)!.number + 1 < first || last.lines[0]!.number > number) {
      block = { host, rank, lines: [] };
      blocks.push(block);
    }
    const { lines } = block!;
    const around: BlockLine[] = [
      ...before.map((near, i) => ({ number: first + i, text: near, match: null })),
      { number, text, match },
      ...after.map((near, i) => ({ number: number + 1 + i, text: near, match: null })),
    ];
    for (const line of around) {
      const shownLine = lines.find((item) => item.number === line.number);
      if (!shownLine) lines.push(line);
      else if (line.match !== null) shownLine.match = line.match;
    }
  });
  return blocks;
}

/** A text in parts, every second of which is one of the places of some words in it, in any case. */
export function partsOf(text: string, words: string): string[] {
  const [lowerText, searched] = [text.toLowerCase(), words.toLowerCase()];
  if (!searched || lowerText.length !== text.length) return [text];
  const parts: string[] = [];
  let from = 0;
  for (let at = lowerText.indexOf(searched); at >= 0; at = lowerText.indexOf(searched, from)) {
    parts.push(text.slice(from, at), text.slice(at, at + searched.length));
    from = at + searched.length;
  }
  return [...parts, text.slice(from)];
}

/** Flags of RE2 at the begin of an expression, which browsers do not know. */
const FLAGS = /^\(\?[imsU]+\)/;

/** What is wrong with a regular expression that is not typed to its end; empty if it may be valid. */
export function faultOf(expression: string): string {
  try {
    new RegExp(expression.replace(FLAGS, ''));
    return '';
  } catch {
    return `“${expression}” is no valid regular expression.`;
  }
}
