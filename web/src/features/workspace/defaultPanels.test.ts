import { expect, it } from 'vitest';
import { chartPanels, matchingPanels, systemSections } from './defaultPanels';
import type { OverlayMetric } from '../../base/wire';

const metric = (key: string, subject: string, chart: string, unit = '%'): OverlayMetric => ({ key, unit, kind: 'gauge', subject, chart, text: '', source: '' });

it('has a panel for each logged name, in natural order', () => {
  expect(chartPanels(['loss10', 'loss2']).map(({ id, title }) => [id, title])).toEqual([
    ['logged/loss2', 'loss2'],
    ['logged/loss10', 'loss10'],
  ]);
});

it('has a section for each part of the machine, what people look at first before the others', () => {
  const sections = systemSections([
    metric('monitor.rssMB', 'Monitor', 'Monitor memory'),
    metric('network.sentMBps', 'Network', 'Network', 'MB/s'),
    metric('network.recvMBps', 'Network', 'Network', 'MB/s'),
    metric('gpu.{i}.fan', 'GPU', 'GPU fan'),
    metric('gpu.{i}.gpu', 'GPU', 'GPU utilization'),
    metric('npu.use', 'NPU', 'NPU'),
    metric('cpu', 'CPU', 'CPU'),
  ]);
  expect(sections.map(({ title, panels }) => [title, panels.map((panel) => panel.title)])).toEqual([
    ['GPU', ['GPU utilization', 'GPU fan']],
    ['CPU', ['CPU']],
    ['Network', ['Network: network.recvMBps', 'Network: network.sentMBps']],
    ['NPU', ['NPU']],
    ['Monitor', ['Monitor memory']],
  ]);
});

it('is searched by title and key', () => {
  const [gpu] = systemSections([metric('gpu.{i}.temp', 'GPU', 'GPU temperature'), metric('gpu.{i}.gpu', 'GPU', 'GPU utilization')]);
  expect(matchingPanels(gpu!.panels, 'temp GPU').map(({ title }) => title)).toEqual(['GPU temperature']);
  expect(matchingPanels(gpu!.panels, ' ')).toHaveLength(2);
});
