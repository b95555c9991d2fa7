import { describe, expect, it } from 'vitest';
import type { Finding } from '../../base/wire';
import type { SeriesInfo } from '../../base/api';
import { evidenceCharts, normalOf } from './evidencePlan';
import { costText, decidingSeries, evidenceText, findingName, findingOf, rangeOf, remediesOf, spanText, subjectText } from './findings';

const FINDING: Finding = {
  id: 'straggler',
  severity: 'warning',
  confidence: 'likely',
  from_ms: 1_000_000,
  to_ms: 3_100_000,
  share: 0.57,
  hosts: ['node0'],
  devices: [3],
  ranks: [3],
  text: 'GPU 3 differs from the others.',
  evidence: [],
  cost: { device_hours: 1.234, money: null },
  advice: 'Compare it.',
  docs: 'reference/findings.md#straggler',
};

describe('a finding', () => {
  it('names its devices, and its hosts where a run has several', () => {
    expect(subjectText(FINDING, 1)).toBe('device 3');
    expect(subjectText(FINDING, 4)).toBe('device 3 of node0');
    expect(subjectText({ ...FINDING, devices: [0, 1, 2, 3, 4, 5], hosts: ['a', 'b', 'c'] }, 4)).toBe('6 devices of 3 hosts');
    expect(subjectText({ ...FINDING, devices: [0, 3] }, 1)).toBe('devices 0, 3');
    expect(subjectText({ ...FINDING, devices: [] }, 1)).toBe('');
  });

  it('tells how long it held, or since when it goes on', () => {
    expect(spanText(FINDING, 9e9)).toMatch(/^from 1970-01-01 \d\d:16:40 for 35 min 00 s$/);
    expect(spanText({ ...FINDING, to_ms: null }, 1_000_000 + 720_000)).toMatch(/^since 1970-01-01 \d\d:16:40, for 12 min 00 s so far$/);
  });

  it('tells what it cost, if it cost anything', () => {
    expect(costText(FINDING)).toBe('1.2 device-hours lost');
    expect(costText({ ...FINDING, cost: { device_hours: 1234.5, money: 99.5 } })).toBe('1,235 device-hours lost, 99.50 in money');
    expect(costText({ ...FINDING, cost: { device_hours: 0, money: null } })).toBe('');
  });

  it('shows evidence with its unit, and what is normal', () => {
    expect(evidenceText({ value: 1110, unit: 'MHz', normal: 1980 })).toBe('1.11 GHz, normally 1.98 GHz');
    expect(evidenceText({ value: 1, unit: '1', normal: null })).toBe('1');
  });

  it('has a range of time with room around it, as far as the run goes', () => {
    expect(rangeOf(FINDING, { started_ms: 0, ended_ms: null }, 0)).toEqual({ min: 1_000_000 - 210_000, max: 3_100_000 + 210_000 });
    expect(rangeOf(FINDING, { started_ms: 990_000, ended_ms: 3_110_000 }, 0)).toEqual({ min: 990_000, max: 3_110_000 });
    expect(rangeOf({ ...FINDING, to_ms: null }, { started_ms: 0, ended_ms: null }, 2_000_000)).toEqual({ min: 900_000, max: 2_100_000 });
  });
});

describe('the address of a finding', () => {
  const first = FINDING;
  const second = { ...FINDING, from_ms: 9_000_000 };
  const other = { ...FINDING, id: 'hang' };

  it('names it among those of its rule', () => {
    expect(findingOf([first, second, other], findingName(second))).toBe(second);
    expect(findingOf([first, second, other], findingName(first))).toBe(first);
  });

  it('finds it after its begin moved, and nothing after it is gone', () => {
    expect(findingOf([first, second, other], 'straggler~8000000')).toBe(second);
    expect(findingOf([other], findingName(first))).toBeNull();
    expect(findingOf([first], 'straggler')).toBe(first);
    expect(findingOf([first], '')).toBeNull();
  });
});

describe('the charts of what decided', () => {
  const evidence = (key: string, host: string, unit = 'MHz', normal: number | null = null) => ({ key, name: key, host, value: 1, unit, normal });
  const series = (key: string, host: string): SeriesInfo => ({
    key, host, role: 'monitor', template: 'gpu.{i}.smClock', unit: 'MHz', kind: 'gauge', subject: 'GPU', chart: 'GPU clocks', text: '', source: '', zero: false, mlflow: null,
  });

  it('are one for each series of its host, in the order of the evidence', () => {
    const all = [series('gpu.0.smClock', 'a'), series('gpu.3.smClock', 'a'), series('gpu.3.smClock', 'b')];
    const charts = evidenceCharts([evidence('gpu.3.smClock', 'b', 'MHz', 1980), evidence('gpu.0.smClock', 'a'), evidence('train/loss', '')], all);
    expect(charts.map(({ plan }) => plan && [plan.title, plan.series.map(({ host, key }) => [host, key]), plan.patterns])).toEqual([
      ['GPU clocks: gpu.3.smClock on b', [['b', 'gpu.3.smClock']], ['gpu.3.smClock']],
      ['GPU clocks: gpu.0.smClock on a', [['a', 'gpu.0.smClock']], ['gpu.0.smClock']],
      null,
    ]);
    expect(charts.map(normalOf)).toEqual([1980, null, null]);
  });

  it('draw what is normal only in the unit of the chart', () => {
    const [chart] = evidenceCharts([evidence('gpu.0.smClock', 'a', '%', 5)], [series('gpu.0.smClock', 'a')]);
    expect(normalOf(chart!)).toBeNull();
  });

  it('show a series once', () => {
    const all = [evidence('x', 'a'), evidence('x', 'b'), evidence('x', 'a')];
    expect(decidingSeries({ ...FINDING, evidence: all })).toEqual(all.slice(0, 2));
  });
});

describe('remedies', () => {
  it('are listed once, with the rules that they would help', () => {
    const undecided = [
      { id: 'a', needs: ['k1', 'k2'] },
      { id: 'b', needs: ['k1', 'unknown', 'constructor'] },
    ];
    expect(remediesOf(undecided, { k1: 'install x', k2: 'install x' })).toEqual([{ text: 'install x', keys: ['k1', 'k2'], rules: ['a', 'b'] }]);
  });
});
