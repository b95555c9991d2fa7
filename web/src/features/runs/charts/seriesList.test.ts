import { describe, expect, it } from 'vitest';
import type { SeriesInfo } from '../../../base/api';
import type { ChartPlan } from './chartPlan';
import { firstCharts, keyGlob, matching, merged } from './seriesList';

const series = (key: string, host = 'node1'): SeriesInfo => ({ key, host, role: 'monitor' }) as SeriesInfo;
const chart = (id: string): ChartPlan => ({ id }) as ChartPlan;

describe('keyGlob', () => {
  it('asks for the longest word, in any case', () => {
    expect(keyGlob('my Loss1')).toBe('*[lL][oO][sS][sS]1*');
    expect(keyGlob('  ')).toBeNull();
  });

  it('takes wildcards for what they are', () => {
    expect(keyGlob('a*[?')).toBe('*[aA][*][[][?]*');
  });

  it('stays below the limit of the server', () => {
    expect(keyGlob('x'.repeat(600))!.length).toBeLessThanOrEqual(512);
  });
});

describe('merged', () => {
  it('adds only what is new', () => {
    expect(merged([series('a'), series('b')], [series('b'), series('b', 'node2')]).map((item) => item.host + item.key)).toEqual([
      'node1a',
      'node1b',
      'node2b',
    ]);
  });
});

describe('firstCharts', () => {
  it('keeps the sections that the first charts are in', () => {
    const sections = [
      { title: 'A', charts: ['1', '2'].map(chart) },
      { title: 'B', charts: ['3', '4'].map(chart) },
      { title: 'C', charts: ['5'].map(chart) },
    ];
    expect(firstCharts(sections, 3).map((section) => section.charts.map((of) => of.id))).toEqual([['1', '2'], ['3']]);
    expect(firstCharts(sections, 9)).toEqual(sections);
  });
});

it('finds names that contain every word, in any case', () => {
  const names = ['train/Loss', 'eval/loss', 'lr'];
  expect(matching(names, 'LOSS train')).toEqual(['train/Loss']);
  expect(matching(names, ' ')).toEqual(names);
});
