import { describe, expect, it } from 'vitest';
import type { Points } from '../../../chart/points';
import { newPanel, type LayoutPanel } from './layout';
import { linesOf, matchesOf, metricsOf, shownPanels, xOf } from './panelLines';
import { deviceIn, globOf, known, namesOf, type MetricNames, type SourceLine, type Subject } from './panelSource';
import type { OverlayRun } from '../../../base/wire';

const NAMES: MetricNames = {
  logged: ['loss', 'train/loss', 'cpu'],
  system: ['cpu', 'gpu.*.gpu', 'gpu.*.powerWatts', 'disk.*.throttle.*Percent'],
  units: new Map([['gpu.*.gpu', '%'], ['gpu.*.powerWatts', 'W']]),
};
const run = (id: string): OverlayRun => ({ id, name: `name of ${id}`, state: 'finished', started_ms: 0, end_ms: 1 });
const points = (...y: number[]): Points => ({ x: y.map((_, i) => i), y, low: null, high: null, n: null });
const line = (subject: Partial<Subject>, ...y: number[]): SourceLine => ({ subject: { run: 'r', host: null, rank: null, device: null, ...subject }, points: points(...y) });
const panel = (more: Partial<LayoutPanel>): LayoutPanel => ({ ...newPanel(), id: 'p', ...more });

it.each([
  ['loss', 'logged'],
  ['cpu', 'logged'],
  ['gpu.0.powerWatts', 'system'],
  ['gpu.*.gpu', 'system'],
  ['unknown', 'logged'],
])('%s is %s', (name, source) => {
  expect(known({ name, source: null }, NAMES).source).toBe(source);
  expect(known({ name, source: 'system' }, NAMES).source).toBe('system');
});

it.each([
  ['gpu.*.gpu', 'gpu.3.gpu', '3'],
  ['gpu.*.gpu', 'gpu..gpu', null],
  ['gpu.*.gpu', 'gpu.3.temp', null],
  ['disk.*.throttle.*Percent', 'disk./mnt/a.b.throttle.hwPercent', '/mnt/a.b.hw'],
  ['cpu', 'cpu', ''],
  ['*', 'x', 'x'],
  ['a*a', 'a', null],
])('%s is %s on device %s', (pattern, key, device) => {
  expect(deviceIn(pattern, key)).toBe(device);
});

it('templates of metrics are names with a star', () => {
  const about = { kind: null, subject: '', chart: '', text: '', source: '' };
  const names = namesOf(['loss'], [{ ...about, key: 'gpu.{i}.throttle.{reason}Percent', unit: '%' }]);
  expect([names.system, names.units.get('gpu.*.throttle.*Percent')]).toEqual([['gpu.*.throttle.*Percent'], '%']);
});

it('a glob for the API has a meaning only where the name has a star', () => {
  expect(globOf('disk.[x]?.*')).toBe('disk.[[]x][?].*');
});

it('metrics that match a pattern are expressions of them', () => {
  expect(matchesOf('loss', NAMES)).toEqual(['loss', '"train/loss"']);
  expect(matchesOf('^cpu$', NAMES)).toEqual(['cpu', 'system:cpu']);
});

it('a pattern makes one panel, or one for each match', () => {
  expect(metricsOf(panel({ pattern: 'loss' }), NAMES).map(({ text }) => text)).toEqual(['loss', '"train/loss"']);
  const panels = shownPanels(panel({ pattern: 'loss', each: true }), NAMES);
  expect(panels.map(({ id, metrics, pattern }) => [id, metrics, pattern])).toEqual([
    ['p:loss', ['loss'], ''],
    ['p:"train/loss"', ['"train/loss"'], ''],
  ]);
  for (const nothing of [panel({ pattern: '(', each: true }), panel({ pattern: 'nothing', each: true })]) expect(shownPanels(nothing, NAMES)).toEqual([nothing]);
});

it('a panel with a metric of the system is over time, because that has no steps', () => {
  const mixed = panel({ metrics: ['loss', 'gpu.0.gpu'] });
  expect(xOf(mixed, metricsOf(mixed, NAMES))).toBe('relative');
  expect(xOf({ ...mixed, x: 'wall' }, metricsOf(mixed, NAMES))).toBe('wall');
  expect(xOf(panel({ metrics: ['loss'] }), metricsOf(panel({ metrics: ['loss'] }), NAMES))).toBe('step');
});

describe('lines', () => {
  it('have a unit, and the label of what differs', () => {
    const metrics = metricsOf(panel({ metrics: ['gpu.*.powerWatts / gpu.*.gpu'] }), NAMES);
    const sources = new Map([
      ['system:gpu.*.powerWatts', [line({ device: '0' }, 100, 200), line({ device: '1' }, 300, 400)]],
      ['system:gpu.*.gpu', [line({ device: '1' }, 3, 4), line({ device: '0' }, 50, 0)]],
    ]);
    const lines = linesOf(metrics, sources, [run('r')]);
    expect(lines.map(({ label, unit, points: { y } }) => [label, unit, y])).toEqual([
      ['device 0', 'W/%', [2, null]],
      ['device 1', 'W/%', [100, 100]],
    ]);
  });

  it('join a metric of each device with one of its host, and leave out what has no partner', () => {
    const metrics = metricsOf(panel({ metrics: ['gpu.*.gpu - loss'] }), NAMES);
    const sources = new Map([
      ['system:gpu.*.gpu', [line({ host: 'a', device: '0' }, 5), line({ host: 'a', device: '1' }, 6), line({ host: 'b', device: '0' }, 7)]],
      ['logged:loss', [line({ host: 'a', rank: 0 }, 1)]],
    ]);
    expect(linesOf(metrics, sources, [run('r')]).map(({ points: { y } }) => y)).toEqual([[4], [5]]);
  });

  it('have different ids, whatever is named twice or recorded twice', () => {
    const metrics = metricsOf(panel({ metrics: ['cpu', 'cpu', 'loss'] }), NAMES);
    expect(metrics.map(({ text }) => text)).toEqual(['cpu', 'loss']);
    const twice = [line({ host: 'a' }, 1), line({ host: 'a' }, 2)];
    const lines = linesOf(metrics, new Map([['logged:cpu', twice], ['logged:loss', twice]]), [run('r')]);
    expect(new Set(lines.map(({ id }) => id)).size).toBe(4);
  });

  it('of several runs have their names, and an id that stays', () => {
    const metrics = metricsOf(panel({ metrics: ['loss', 'cpu'] }), NAMES);
    const both = [line({ run: 'r' }, 1), line({ run: 's' }, 2)];
    const lines = linesOf(metrics, new Map([['logged:loss', both], ['logged:cpu', both]]), [run('r'), run('s')]);
    expect(lines.map(({ label }) => label)).toEqual(['name of r · loss', 'name of s · loss', 'name of r · cpu', 'name of s · cpu']);
    expect(lines[0]!.id).toBe('r////loss');
    expect(new Set(lines.map(({ slot }) => slot)).size).toBe(4);
  });
});
