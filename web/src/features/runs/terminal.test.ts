import { describe, expect, it } from 'vitest';
import type { ConsolePiece } from '../../base/api';
import { PLAIN, terminalLines } from './terminal';

const piece = (text: string, more: Partial<ConsolePiece> = {}): ConsolePiece => ({ time_ms: 1000, stream: 'stdout', text, host: 'a', rank: 0, ...more });
const lines = (...texts: string[]): string[] => terminalLines(texts.map((text) => piece(text))).map(({ text }) => text);
const spans = (text: string): unknown[] =>
  terminalLines([piece(text)])[0]!.spans.map(({ text: part, style }) => [part, Object.fromEntries(Object.entries(style).filter(([name, value]) => value !== PLAIN[name as keyof typeof PLAIN]))]);

describe('lines of output', () => {
  it('end where the program ended them, however it was written', () => {
    expect(lines('one\ntw', 'o\n\nthree')).toEqual(['one', 'two', '', 'three']);
    expect(lines('one\n', 'two\n')).toEqual(['one', 'two']);
    expect(lines('one\r\ntwo\r\n')).toEqual(['one', 'two']);
  });

  it('show a progress bar as it is now', () => {
    expect(lines('10%\r50%\r100%\n')).toEqual(['100%']);
    expect(lines('10%\r', '50%\r')).toEqual(['50%']);
  });

  it('of two ranks stay whole, with the time at which they began', () => {
    const lines = terminalLines([piece('lo'), piece('other\n', { rank: 1, time_ms: 1500 }), piece('ss 3\n', { time_ms: 2000 })]);
    expect(lines.map(({ text, time_ms }) => [text, time_ms])).toEqual([
      ['loss 3', 1000],
      ['other', 1500],
    ]);
    expect(terminalLines([piece('x\n', { stream: 'stderr' })])[0]!.isError).toBe(true);
  });
});

describe('escape sequences', () => {
  it('set colours and styles, until they are reset', () => {
    expect(spans('\x1b[1;31mbad\x1b[0m and \x1b[92mgood\x1b[39m.')).toEqual([
      ['bad', { bold: true, color: 1 }],
      [' and ', {}],
      ['good', { color: 10 }],
      ['.', {}],
    ]);
    expect(spans('\x1b[44;3;4;2mx')).toEqual([['x', { background: 4, italic: true, underline: true, faint: true }]]);
  });

  it('keep a colour over the end of a line, of the same process', () => {
    const [, second, third] = terminalLines([piece('\x1b[31ma\n'), piece('b\n', { rank: 1 }), piece('c\n')]);
    expect(second!.spans[0]!.style.color).toBeNull();
    expect(third!.spans[0]!.style.color).toBe(1);
  });

  it('of 256 and of all colours are the nearest of the sixteen', () => {
    expect(spans('\x1b[38;5;196mx')).toEqual([['x', { color: 9 }]]);
    expect(spans('\x1b[38;2;0;120;0mx')).toEqual([['x', { color: 2 }]]);
    expect(spans('\x1b[48:5:250mx')).toEqual([['x', { background: 7 }]]);
    expect(spans('\x1b[38;5mx')).toEqual([['x', { color: 0 }]]);
  });

  it('with any other effect have none', () => {
    expect(lines('a\x1b[2Jb\x1b[10;10Hc\x1b]0;title\x07d\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\\x1bc!')).toEqual(['abcdlink!']);
    expect(lines('a\x1b')).toEqual(['a']);
    expect(lines('a\x1b]0;never ends')).toEqual(['a']);
  });
});

it('control and reordering characters are shown as such', () => {
  expect(lines('a\u0000b\u0007\u009b31mc\u202ed')).toEqual(['a\ufffdb\ufffd\ufffd31mc\ufffdd']);
  expect(lines('tab\there')).toEqual(['tab\there']);
});
