import { describe, expect, it } from 'vitest';
import type { Colors } from '../../../chart/chartImage';
import { newPanel, type LayoutPanel, type PanelKind } from './layout';
import { panelGroup } from './panelImage';
import type { PanelLine } from './panelLines';

const COLORS: Colors = { background: '#fff', text: '#111', soft: '#555', grid: '#eee', warning: '#960', error: '#c00' };
const HOSTILE = '</text><script>alert(1)</script>';

function line(name: string, metric: number, ...y: (number | null)[]): PanelLine {
  const subject = { run: name, host: null, rank: null, device: null };
  return { id: `${name}/${metric}`, label: name, slot: 0, dashed: false, metric, text: 'loss', subject, subjectLabel: name, unit: '', points: { x: y.map((_, i) => i), y, low: null, high: null, n: null } };
}

function drawn(kind: PanelKind, lines: PanelLine[], more: Partial<LayoutPanel> = {}, message: string | null = null): string {
  const panel = { ...newPanel(kind), metrics: ['loss'], ...more };
  return panelGroup({ panel, title: HOSTILE, note: '', lines, message, colorOf: () => '#2f6fd0' }, COLORS);
}

const count = (svg: string, part: string): number => svg.split(part).length - 1;

describe('a panel as SVG', () => {
  it('has a bar for each line with a value', () => {
    const svg = drawn('bar', [line('a', 0, 1, 4), line('b', 0, -2), line('c', 0, null)]);
    expect([...svg.matchAll(/<rect x="([\d.]+)"[^>]* width="([\d.]+)"/g)].map(([, x, width]) => [Number(x), Number(width)])).toEqual([
      [335, 135],
      [267.5, 67.5],
    ]);
  });

  it('says how many lines have no room', () => {
    const svg = drawn('bar', Array.from({ length: 40 }, (_, i) => line(`run ${i}`, 0, i + 1)));
    expect(count(svg, '<rect') + Number(/and (\d+) more/.exec(svg)![1])).toBe(40);
  });

  it('has the dots of a scatter plot and the parts of a histogram', () => {
    expect(count(drawn('scatter', [line('a', 0, 1, 2, 3), line('a', 1, 4, 5, 6)], { across: 'accuracy', points: true }), '<circle')).toBe(3);
    expect(count(drawn('histogram', [line('a', 0, 1, 2, 3), line('b', 0, 3)]), '<rect')).toBe(4);
  });

  it('has numbers and tables as text', () => {
    expect(drawn('scalar', [line('a', 0, 1, 2)])).toContain('>2<');
    const table = drawn('table', [line('a', 0, 1, 3)]);
    for (const cell of ['last', 'mean', '>a<', '>1<', '>2<', '>3<']) expect(table).toContain(cell);
  });

  it('has the text of a text panel, or why there is nothing to draw', () => {
    expect(drawn('text', [], {}, 'first line\nsecond line')).toMatch(/first line.*second line/);
    expect(drawn('bar', [], {}, 'None of these runs has loss.')).toContain('None of these runs has loss.');
  });

  it('has names as text only', () => {
    for (const kind of ['bar', 'scatter', 'histogram', 'scalar', 'table'] as const) {
      expect(drawn(kind, [line(HOSTILE, 0, 1, 2)], { across: HOSTILE })).not.toContain('<script');
    }
  });
});
