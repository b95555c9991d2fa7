import { expect, it } from 'vitest';
import { csvText } from '../../../base/csv';
import type { Points } from '../../../chart/points';
import { newPanel, type LayoutPanel } from './layout';
import { panelRows } from './panelCsv';
import type { PanelLine } from './panelLines';

const points = (y: (number | null)[], n: number[] | null = null): Points => ({ x: y.map((_, i) => i * 10), y, low: null, high: null, n });
const line = (run: string, metric: number, y: (number | null)[]): PanelLine => ({
  id: `${run}/${metric}`,
  label: run,
  slot: 0,
  dashed: false,
  metric,
  text: ['loss', 'lr'][metric]!,
  subject: { run, host: null, rank: null, device: null },
  subjectLabel: `the run ${run}`,
  unit: '',
  points: points(y),
});
const panel = (more: Partial<LayoutPanel>): LayoutPanel => ({ ...newPanel(), ...more });
const LINES = [line('a', 0, [1, null, 3]), line('b', 0, [5, 6])];

it('text that a spreadsheet would run, and quotes, are written safely', () => {
  expect(csvText([['=1+1', 'a "b"', 'x,y', -2, null, undefined, 1e-7]])).toBe(`'=1+1,"a ""b""","x,y",-2,,,1e-7\n`);
});

it('a panel of lines has a row of each point, with gaps', () => {
  expect(panelRows(panel({ kind: 'line' }), LINES, 'step')!.slice(0, 4)).toEqual([
    ['run', 'host', 'rank', 'device', 'name', 'metric', 'step', 'value', 'min', 'max', 'n'],
    ['a', null, null, null, 'the run a', 'loss', 0, 1, 1, 1, 1],
    ['a', null, null, null, 'the run a', 'loss', 10, null, null, null, 0],
    ['a', null, null, null, 'the run a', 'loss', 20, 3, 3, 3, 1],
  ]);
});

it('percentiles have a row of each share and place', () => {
  expect(panelRows(panel({ kind: 'percentile', percentiles: [50] }), LINES, 'step')!.slice(0, 2)).toEqual([
    ['percentile', 'step', 'value'],
    [50, 0, 3],
  ]);
});

it('a number, bars and a table have all statistics of each line', () => {
  for (const kind of ['bar', 'scalar', 'table'] as const) {
    expect(panelRows(panel({ kind }), LINES, 'step')).toEqual([
      ['run', 'host', 'rank', 'device', 'name', 'metric', 'last', 'min', 'mean', 'max'],
      ['a', null, null, null, 'the run a', 'loss', 3, 1, 2, 3],
      ['b', null, null, null, 'the run b', 'loss', 6, 5, 5.5, 6],
    ]);
  }
});

it('a scatter plot has its dots, and a histogram its bins', () => {
  const both = [line('a', 0, [1, 2]), line('a', 1, [0.1, 0.2])];
  expect(panelRows(panel({ kind: 'scatter', across: 'lr', statistic: 'last' }), both, 'step')![1]!.slice(5)).toEqual(['loss', 0.2, 2]);
  const rows = panelRows(panel({ kind: 'histogram', statistic: 'max' }), LINES, 'step')!.slice(1);
  expect(rows.reduce((sum, row) => sum + (row.at(-1) as number), 0)).toBe(2);
  expect(panelRows(panel({ kind: 'text' }), [], 'step')).toBeNull();
});
