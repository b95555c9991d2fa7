import { describe, expect, it } from 'vitest';
import { chartSvg, pageSvg, wrapped, xmlText, type Colors } from './chartImage';
import type { Drawn } from './drawn';
import type { ChartSnapshot } from './shownCharts.svelte';

const colors: Colors = { background: '#fff', text: '#111', soft: '#555', grid: '#eee', warning: '#960', error: '#c00' };
const HOSTILE = '</text><script>alert(1)</script>&"\'\u0000\ud800';

function line(more: Partial<Drawn> = {}): Drawn {
  const points = { x: [0, 1, 2, 3], y: [0, 5, null, 10], low: null, high: null, n: null };
  return { id: 'a', label: 'a', color: '#2f6fd0', dash: [], points, band: false, raw: null, width: 1.4, faded: false, ...more };
}

function chart(more: Partial<ChartSnapshot> = {}): ChartSnapshot {
  const y = { scale: 'linear', outliersAside: false, unit: 'W' } as const;
  return { title: 'GPU power', lines: [line()], axis: { kind: 'step' }, y, range: { min: 0, max: 3 }, pins: [], ...more };
}

const pathsOf = (svg: string): string[] => [...svg.matchAll(/<path d="([^"]*)" stroke="#2f6fd0"/g)].map((match) => match[1]!);

describe('a chart as SVG', () => {
  it('has a line with a gap where a value is missing', () => {
    const [path] = pathsOf(chartSvg(chart(), colors));
    expect(path!.match(/[ML]/g)).toEqual(['M', 'L', 'M']);
  });

  it('has the values in the range of its axis', () => {
    const points = { x: [0, 1], y: [100, 200], low: null, high: null, n: null };
    const y = { scale: 'linear', outliersAside: false, unit: 'W' } as const;
    const [path] = pathsOf(chartSvg(chart({ lines: [line({ points })], y, range: { min: 0, max: 1 } }), colors));
    const heights = [...path!.matchAll(/[ML][\d.-]+ ([\d.-]+)/g)].map((match) => Number(match[1]));
    expect(heights).toHaveLength(2);
    for (const height of heights) expect(height).toSatisfy((at: number) => at > 58 && at < 272);
  });

  it('has a gap where nothing was read for long', () => {
    const points = { x: [0, 1, 2, 3, 90], y: [1, 1, 1, 1, 1], low: null, high: null, n: null };
    const [path] = pathsOf(chartSvg(chart({ lines: [line({ points })], range: { min: 0, max: 90 } }), colors));
    expect(path!.match(/[ML]/g)).toEqual(['M', 'L', 'L', 'L', 'M']);
  });

  it('draws no zero on a logarithmic axis', () => {
    const y = { scale: 'log', outliersAside: false, unit: '' } as const;
    const [path] = pathsOf(chartSvg(chart({ y }), colors));
    expect(path!.match(/[ML]/g)).toEqual(['M', 'M']);
    expect(path).not.toMatch(/NaN|Infinity/);
  });

  it('has names and titles as text only', () => {
    const svg = chartSvg(chart({ title: HOSTILE, lines: [line({ label: HOSTILE })] }), colors);
    expect(svg).not.toContain('<script');
    expect(svg).not.toMatch(/[\u0000\ud800]/);
    expect(svg).toContain('&#60;script&#62;');
  });

  it('marks what was found within its range', () => {
    const marks = [
      { min: 1, max: Infinity, level: 'critical', text: HOSTILE, href: '' },
      { min: -9, max: -8, level: 'warning', text: 'before', href: '' },
    ] as const;
    const svg = chartSvg(chart({ marks }), colors);
    expect(svg.match(/<title>/g)).toHaveLength(1);
    expect(svg).not.toContain('<script');
    expect(svg).not.toMatch(/NaN|Infinity/);
  });
});

it('a page has each of its charts once', () => {
  const svg = pageSvg('my run', [chart(), chart({ title: 'Second' }), { draw: () => '<text>Third</text>' }], ['samples (image)'], colors);
  expect(svg.match(/<g transform/g)).toHaveLength(3);
  expect(svg).toContain('<text>Third</text>');
  expect(svg).toContain('Not in this picture: samples (image)');
  expect(new Set([...svg.matchAll(/clipPath id="(\w+)"/g)].map((match) => match[1])).size).toBe(2);
  expect(svg).toContain('my run');
});

it('text is escaped for XML', () => {
  expect(xmlText('a<b & "c" 😀')).toBe('a&#60;b &#38; &#34;c&#34; 😀');
});

it('text is wrapped at spaces, and anywhere in long words', () => {
  expect(wrapped('one two three\nfour', 8)).toEqual(['one two', 'three', 'four']);
  expect(wrapped('abcdefghij', 4)).toEqual(['abcd', 'efgh', 'ij']);
});

it('a legend names as many lines as have room', () => {
  const lines = Array.from({ length: 8 }, (_, i) => line({ label: `a rather long name of run ${i}` }));
  expect(chartSvg(chart({ lines }), colors)).toContain('and 6 more');
  expect(chartSvg(chart({ lines: lines.slice(0, 2) }), colors)).not.toContain('more');
});
