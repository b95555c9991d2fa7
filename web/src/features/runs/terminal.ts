// A program's output as lines to show. Of its escape sequences, only colours and styles (SGR) have an effect.

import type { ConsolePiece } from '../../base/api';

export interface Style {
  /** 0 to 15: black, red, green, yellow, blue, magenta, cyan, white, then bright; null is the page's own. */
  color: number | null;
  background: number | null;
  bold: boolean;
  faint: boolean;
  italic: boolean;
  underline: boolean;
}

export interface Span {
  text: string;
  style: Style;
}

export interface TerminalLine {
  time_ms: number;
  isError: boolean;
  spans: Span[];
  text: string;
}

export const PLAIN: Style = { color: null, background: null, bold: false, faint: false, italic: false, underline: false };

/** A sequence that ends is removed as a whole; CSI with `m` sets colours. One of OSC and the like may lack its end. */
const TOKEN = /\x1b\[([0-?]*)[ -/]*([@-~])|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -~]?|\r+|[^\x1b\r]+/g;
/** Control characters that have no place in a line, and those that reorder text beyond it. */
const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

/** Where the output of one process continues. */
interface Source {
  line: TerminalLine | null;
  raw: string;
  style: Style;
}

/** The lines of the output. Each line of several processes stays whole, at the place where it began. */
export function terminalLines(pieces: readonly ConsolePiece[]): TerminalLine[] {
  const lines: TerminalLine[] = [];
  const sources = new Map<string, Source>();
  for (const { host, rank, stream, text, time_ms } of pieces) {
    const name = `${host}\n${rank}\n${stream}`;
    const source: Source = sources.get(name) ?? { line: null, raw: '', style: PLAIN };
    sources.set(name, source);
    const parts = text.split('\n');
    parts.forEach((part, i) => {
      const ended = i < parts.length - 1;
      if (source.line === null && (part !== '' || ended)) {
        source.line = { time_ms, isError: stream === 'stderr', spans: [], text: '' };
        lines.push(source.line);
      }
      source.raw += part;
      if (ended) finish(source);
    });
  }
  for (const source of sources.values()) finish(source);
  return lines;
}

/** Set the text of the current line from what was written to it. */
function finish(source: Source): void {
  const { line, raw } = source;
  if (!line) return;
  let style = source.style;
  let spans: Span[] = [];
  for (const token of raw.replace(/\r+$/, '').matchAll(TOKEN)) {
    const [text, parameters, letter] = token;
    if (text[0] === '\r') spans = []; // what follows is written over it
    else if (letter === 'm') style = styled(style, parameters ?? '');
    else if (text[0] !== '\x1b') spans.push({ text: text.replace(INVISIBLE, '\ufffd'), style });
  }
  line.spans = spans.filter(({ text }) => text !== '');
  line.text = line.spans.map(({ text }) => text).join('');
  Object.assign(source, { line: null, raw: '', style });
}

const SWITCHES: Record<number, Partial<Style>> = {
  1: { bold: true },
  2: { faint: true },
  3: { italic: true },
  4: { underline: true },
  22: { bold: false, faint: false },
  23: { italic: false },
  24: { underline: false },
  39: { color: null },
  49: { background: null },
};

/** A style after an SGR sequence with these parameters. */
function styled(before: Style, parameters: string): Style {
  const codes = parameters.split(/[;:]/).map((text) => Number(text) || 0);
  let style = before;
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i]!;
    if (code === 0) style = PLAIN;
    else if (SWITCHES[code]) style = { ...style, ...SWITCHES[code] };
    else if (code === 38 || code === 48) {
      const [color, used] = extended(codes.slice(i + 1));
      i += used;
      if (color !== null) style = code === 38 ? { ...style, color } : { ...style, background: color };
    } else {
      const color = basic(code % 10, code >= 90 ? 8 : 0);
      const tens = Math.floor(code / 10);
      if (color !== null && (tens === 3 || tens === 9)) style = { ...style, color };
      if (color !== null && (tens === 4 || tens === 10)) style = { ...style, background: color };
    }
  }
  return style;
}

const basic = (digit: number, first: number): number | null => (digit < 8 ? first + digit : null);

/** The nearest of the sixteen colours to one of 256 or of all, and how many parameters it took. Those are legible on light and dark. */
function extended([kind, ...rest]: number[]): [number | null, number] {
  if (kind === 5) return [of256(rest[0] ?? 0), 2];
  if (kind === 2) return [nearest(rest[0] ?? 0, rest[1] ?? 0, rest[2] ?? 0), 4];
  return [null, 1];
}

function of256(n: number): number {
  if (n < 16) return n;
  if (n >= 232) return nearest((n - 232) * 10 + 8, (n - 232) * 10 + 8, (n - 232) * 10 + 8);
  const part = (by: number): number => Math.floor((n - 16) / by) % 6;
  return nearest(part(36) * 51, part(6) * 51, part(1) * 51);
}

function nearest(red: number, green: number, blue: number): number {
  const [low, high] = [Math.min(red, green, blue), Math.max(red, green, blue)];
  if (high - low < 32) return high < 64 ? 0 : high < 144 ? 8 : high < 224 ? 7 : 15;
  const middle = (low + high) / 2;
  const hue = Number(red > middle) + 2 * Number(green > middle) + 4 * Number(blue > middle);
  return hue + (high > 200 ? 8 : 0);
}
