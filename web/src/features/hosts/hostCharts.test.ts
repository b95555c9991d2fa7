import { describe, expect, it } from 'vitest';
import { CHART_KEYS, hostCharts } from './hostCharts';

const series = (key: string): { key: string; t: number[]; value: number[]; min: number[]; max: number[] } => ({ key, t: [0, 1], value: [1, 2], min: [0, 1], max: [2, 3] });
const charts = (...keys: string[]): ReturnType<typeof hostCharts> =>
  hostCharts({ t0: 0, t1: 2, bucket_ms: 1, left_out: 0, series: keys.map(series) }, false, 'standard');

describe('the charts of a host', () => {
  it('have a line for each device, in the order of their numbers', () => {
    const [use] = charts('gpu.10.gpu', 'gpu.2.gpu', 'gpu.process.2.gpu');
    expect(use).toMatchObject({ title: 'Device use', unit: '%' });
    expect(use!.lines.map(({ label }) => label)).toEqual(['device 2', 'device 10']);
  });

  it('give a device the same colour in all', () => {
    const [use, power] = charts('gpu.1.gpu', 'gpu.0.gpu', 'gpu.1.powerWatts');
    expect(power!.lines[0]!.color).toBe(use!.lines[1]!.color);
  });

  it('leave out what nobody measured', () => {
    expect(charts('cpu', 'gpu.0.temp').map(({ title }) => title)).toEqual(['Device temperature', 'CPU']);
    expect(charts('cpu', 'cpu.mean').map(({ lines }) => lines.map(({ id }) => id))).toEqual([['cpu.mean']]);
    expect(charts()).toEqual([]);
  });

  it('request few keys', () => expect(new Set(CHART_KEYS).size).toBe(CHART_KEYS.length));
});
