import { describe, expect, it } from 'vitest';
import type { SeriesInfo } from '../../../base/api';
import { inMlflow, plan, search, shorten } from './chartPlan';

function series(key: string, chart: string, subject: string, more: Partial<SeriesInfo> = {}): SeriesInfo {
  return {
    key,
    template: key,
    host: 'node1',
    role: 'monitor',
    unit: '%',
    kind: 'gauge',
    subject,
    chart,
    text: `About ${key}.`,
    source: '',
    zero: false,
    mlflow: null,
    ...more,
  };
}

describe('plan', () => {
  it('puts accelerators first, the monitor last, and a chart of process and host into the host', () => {
    const sections = plan([
      series('cpu', 'CPU', 'Process'),
      series('cpu.mean', 'CPU', 'CPU'),
      series('monitor.rssMB', 'Monitor memory', 'Monitor'),
      series('gpu.0.gpu', 'GPU utilization', 'GPU'),
      series('cpu.pressurePercent', 'Pressure', 'CPU'),
      series('io.pressurePercent', 'Pressure', 'Disk'),
      series('my.own', 'my.own', 'Other'),
    ]);
    expect(sections.map((section) => [section.title, section.charts.map((chart) => chart.title)])).toEqual([
      ['GPU', ['GPU utilization']],
      ['CPU', ['CPU']],
      ['Pressure', ['Pressure']],
      ['Other', ['my.own']],
      ['Monitor', ['Monitor memory']],
    ]);
  });

  it('draws speeds, not the totals they come from', () => {
    const [disk] = plan([
      series('disk.in', 'Disk I/O', 'Disk', { unit: 'MiB', kind: 'counter' }),
      series('disk.readMBps', 'Disk I/O', 'Disk', { unit: 'MiB/s', kind: 'rate' }),
    ]);
    expect(disk!.charts.map((chart) => chart.series.map((item) => item.key))).toEqual([['disk.readMBps']]);
  });

  it('leaves out a chart per device where there is one device', () => {
    const total = series('disk.readMBps', 'Disk I/O', 'Disk', { kind: 'rate' });
    const vda = series('disk.vda.readMBps', 'Disk I/O per device', 'Disk', { template: 'disk.{dev}.readMBps' });
    const vdb = { ...vda, key: 'disk.vdb.readMBps' };
    expect(plan([total, vda])[0]!.charts.map((chart) => chart.title)).toEqual(['Disk I/O']);
    expect(plan([vda])[0]!.charts.map((chart) => chart.title)).toEqual(['Disk I/O per device']);
    expect(plan([total, vda, vdb])[0]!.charts.length).toBe(2);
  });

  it('asks for a family of keys by one pattern, and names its lines in order', () => {
    const cores = [10, 2, 1].map((i) =>
      series(`cpu.${i}.cpu_percent`, 'CPU per core', 'CPU', { template: 'cpu.{i}.cpu_percent' }),
    );
    const [chart] = plan(cores)[0]!.charts;
    expect(chart!.patterns).toEqual(['cpu.*.cpu_percent']);
    expect(chart!.series.map((item) => item.label)).toEqual(['cpu 1', 'cpu 2', 'cpu 10']);
  });

  it('names hosts where there are several', () => {
    const [chart] = plan([series('cpu', 'CPU', 'CPU'), series('cpu', 'CPU', 'CPU', { host: 'node2' })])[0]!.charts;
    expect(chart!.series.map((line) => line.label)).toEqual(['node1', 'node2']);
  });

  it('knows a fault counter that counted nothing, and puts it last', () => {
    const sections = plan([
      series('network.eth0.errors', 'Network errors', 'Network', { kind: 'counter', zero: true }),
      series('network.sentMBps', 'Network', 'Network', { kind: 'rate' }),
    ]);
    expect(sections[0]!.charts.map((chart) => [chart.title, chart.quiet])).toEqual([
      ['Network', false],
      ['Network errors', true],
    ]);
  });
});

describe('shorten', () => {
  it.each([
    [['disk.readMBps', 'disk.writeMBps'], ['readMBps', 'writeMBps']],
    [['cpu', 'cpu.mean'], ['cpu', 'cpu.mean']],
    [['gpu.0.temp', 'gpu.1.temp'], ['gpu 0', 'gpu 1']],
    [['proc.count'], ['proc.count']],
  ])('%j is %j', (keys, short) => {
    expect([...shorten(keys).values()]).toEqual(short);
  });
});

it('search finds charts by all the words in section, title or keys', () => {
  const sections = plan([series('cpu', 'CPU', 'CPU'), series('disk.readMBps', 'Disk I/O', 'Disk')]);
  expect(search(sections, 'disk read').map((section) => section.title)).toEqual(['Disk']);
  expect(search(sections, 'disk cpu')).toEqual([]);
  expect(search(sections, ' ').length).toBe(2);
});

describe("MLflow's names", () => {
  const gpu = (i: number): SeriesInfo =>
    series(`gpu.${i}.memoryAllocatedBytes`, 'GPU memory used', 'GPU', {
      unit: 'bytes',
      mlflow: { name: `system/gpu_${i}_memory_usage_megabytes`, unit: 'MB', factor: 1e-6 },
    });

  it('find a chart under all schemes of names', () => {
    expect(search(plan([gpu(0), series('cpu', 'CPU', 'CPU')]), 'gpu_0_memory_usage')).toHaveLength(1);
  });

  it('are drawn in units of MLflow where it has a name for all of a chart', () => {
    const [chart] = inMlflow(plan([gpu(0), gpu(1)]))[0]!.charts;
    expect(chart!.unit).toBe('MB');
    expect(chart!.series.map((item) => [item.label, item.factor])).toEqual([
      ['system/gpu_0_memory_usage_megabytes', 1e-6],
      ['system/gpu_1_memory_usage_megabytes', 1e-6],
    ]);
  });

  it('leave a chart in our unit where MLflow has no name for some of it', () => {
    const other = series('gpu.0.memoryReserved', 'GPU memory used', 'GPU', { unit: 'bytes' });
    const [chart] = inMlflow(plan([gpu(0), other]))[0]!.charts;
    expect([chart!.unit, chart!.series.map((item) => item.factor)]).toEqual(['bytes', [1, 1]]);
  });
});

describe('quantities that differ', () => {
  const clocks = (devices: number): SeriesInfo[] =>
    Array.from({ length: devices }, (_, i) => ['encoder', 'decoder'].map((name) => series(`gpu.${i}.${name}`, 'GPU video engines', 'GPU', { template: `gpu.{i}.${name}` }))).flat();

  it('are charts of their own where they would be drawn as one mean', () => {
    expect(plan(clocks(4)).flatMap(({ charts }) => charts.map(({ title }) => title))).toEqual(['GPU video engines']);
    const apart = plan(clocks(8)).flatMap(({ charts }) => charts);
    expect(apart.map(({ title, ofDevices, series: lines }) => [title, ofDevices, lines.length])).toEqual([
      ['GPU video engines: encoder', true, 8],
      ['GPU video engines: decoder', true, 8],
    ]);
  });

  it('are summed if they count faults, and folded if they hardly ever change', () => {
    const [section] = plan([
      series('a', 'GPU memory errors', 'GPU', { unit: '1' }),
      series('b', 'GPU power limit', 'GPU', { unit: 'W' }),
      series('c', 'GPU temperature limits', 'GPU', { unit: '°C' }),
      series('d', 'GPU utilization', 'GPU'),
    ]);
    expect(section!.charts.map(({ title, summed, quiet }) => [title, summed, quiet])).toEqual([
      ['GPU utilization', false, false],
      ['GPU memory errors', true, false],
      ['GPU temperature limits', false, true],
      ['GPU power limit', false, true],
    ]);
  });
});
