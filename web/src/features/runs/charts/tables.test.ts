import { describe, expect, it } from 'vitest';
import type { RunKey } from '../../../base/api';
import type { ChartPlan, PlannedSeries } from './chartPlan';
import { chartTables, loggedTables, pageTable } from './tables';

const series = (key: string, host = 'a'): PlannedSeries => ({ key, host, role: 'monitor', label: key, text: '', device: null, slot: 0, mlflow: null, factor: 1 });
const plan = (members: PlannedSeries[], patterns = ['gpu.*.temp']): ChartPlan => ({
  id: 'x',
  title: 'x',
  unit: '',
  text: '',
  sources: [],
  series: members,
  ofDevices: true,
  patterns,
  quiet: false,
  important: false, summed: false,
});
const key = (id: string, entity: string | null = null): RunKey => ({ id, entity });
const query = (address: string): URLSearchParams => new URL(address, 'http://x').searchParams;

describe('the table of a chart', () => {
  it('has its keys, its host and the shown times', () => {
    const { shown, all } = chartTables(key('my run'), plan([series('gpu.0.temp'), series('gpu.1.temp')]), { min: 10.5, max: 20.5 }, null);
    expect(shown).toMatch(/^\/api\/v1\/runs\/my%20run\/metrics\?/);
    expect(query(shown).getAll('keys')).toEqual(['gpu.0.temp', 'gpu.1.temp']);
    expect(['host', 't0', 't1', 'max_points', 'format'].map((name) => query(shown).get(name))).toEqual(['a', '10', '21', '300', 'csv']);
    expect([query(all).get('resolution'), query(all).get('max_points')]).toEqual(['raw', null]);
  });

  it('names many keys by a pattern, and no host where there are several', () => {
    const many = Array.from({ length: 61 }, (_, i) => series(`gpu.${i}.temp`, i ? 'a' : 'b'));
    const { shown } = chartTables(key('r'), plan(many), null, null);
    expect(query(shown).getAll('keys')).toEqual(['gpu.*.temp']);
    expect(query(shown).get('host')).toBeNull();
  });

  it('takes wildcards in a key as they are', () => {
    expect(query(chartTables(key('r'), plan([series('a*[b]?')]), null, null).shown).getAll('keys')).toEqual(['a[*][[]b][?]']);
  });
});

it('the table of a page has all of its charts, or the whole run if they are too many to name', () => {
  const charts = Array.from({ length: 3 }, (_, i) => plan([], [`chart.${i}`]));
  expect(query(pageTable(key('r'), charts, null, null)).getAll('keys')).toEqual(['chart.0', 'chart.1', 'chart.2']);
  const many = Array.from({ length: 91 }, (_, i) => plan([], [`chart.${i}`]));
  expect(query(pageTable(key('r'), many, null, null)).has('keys')).toBe(false);
});

it('the table of logged values is of the names', () => {
  expect(loggedTables(key('r', 'vision'), ['a&b'], 1000).shown).toBe('/api/v1/runs/r/history?entity=vision&keys=a%26b&max_points=1000&format=csv');
});
