import { expect, it } from 'vitest';
import { chartPanels, chartSections, matchingPanels, shownSections, systemSections } from './defaultPanels';
import type { OverlayMetric } from '../../base/wire';

const metric = (key: string, subject: string, chart: string, unit = '%'): OverlayMetric => ({ key, unit, kind: 'gauge', subject, chart, text: '', source: '' });

it('has a panel for each logged name, in natural order', () => {
  expect(chartPanels(['loss10', 'loss2']).map(({ id, title }) => [id, title])).toEqual([
    ['logged/loss2', 'loss2'],
    ['logged/loss10', 'loss10'],
  ]);
});

it('has a section for each beginning of names, what people look at first before the others', () => {
  const of = (names: string[], goals: string[] = []) => chartSections(chartPanels(names), new Set(goals)).map(({ title, panels }) => [title, panels.map((panel) => panel.title)]);
  const names = ['epoch', 'lr', 'train/grad_norm', 'train/loss', 'train/throughput', 'val/accuracy', 'val/loss', 'opt/lr', 'layers/a', 'layers/b'];
  expect(of(names)).toEqual([
    ['val', ['val/loss', 'val/accuracy']],
    ['train', ['train/loss', 'train/throughput', 'train/grad_norm']],
    ['layers', ['layers/a', 'layers/b']],
    ['Charts', ['epoch', 'lr', 'opt/lr']],
  ]);
  expect(of(names, ['layers/b'])[0]).toEqual(['layers', ['layers/b', 'layers/a']]);
  expect(of(['loss', 'epoch', 'accuracy'])).toEqual([['Charts', ['loss', 'accuracy', 'epoch']]]);
});

it('folds what was sampled of the system, unless nothing was logged', () => {
  const system = systemSections([metric('cpu', 'CPU', 'CPU')]);
  const folded = (names: string[]) => shownSections(chartSections(chartPanels(names)), 'step', system, 'relative').map(({ title, usuallyFolded }) => [title, usuallyFolded]);
  expect(folded(['loss'])).toEqual([['Charts', false], ['System: CPU', true]]);
  expect(folded([])).toEqual([['System: CPU', false]]);
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
