import { describe, expect, it } from 'vitest';
import type { Finding } from '../../base/wire';
import { marksAt, marksOf, marksUntil } from './chartMarks';

const FINDING: Finding = {
  id: 'straggler',
  severity: 'warning',
  confidence: 'likely',
  from_ms: 1000,
  to_ms: 3000,
  share: 0.5,
  hosts: ['node0'],
  devices: [3],
  ranks: [],
  text: 'GPU 3 is slow.',
  evidence: [{ key: 'gpu.3.smClock', name: 'GPU SM clock, device 3', host: 'node0', value: 1, unit: 'MHz', normal: null }],
  cost: { device_hours: 0, money: null },
  advice: '',
  docs: '',
};
const LOSS: Finding = { ...FINDING, id: 'loss_not_finite', severity: 'critical', to_ms: null, text: 'NaN', evidence: [{ key: 'loss', name: 'loss', host: '', value: 1, unit: '', normal: null }] };
const href = ({ id }: Pick<Finding, 'id'>): string => `/${id}`;

describe('findings on charts', () => {
  it('are marked where a metric of all devices is drawn', () => {
    expect(marksOf([FINDING], [{ key: 'gpu.*.smClock' }], href)).toHaveLength(1);
    expect(marksOf([FINDING], [{ key: 'gpu.*.sm' }, { key: 'cpu.*.smClock' }], href)).toEqual([]);
  });

  it('are marked where a series is drawn that decided', () => {
    const on = (key: string, host?: string): string[] => marksOf([FINDING, LOSS], [{ key, host }], href).map((mark) => mark.href);
    expect(on('gpu.3.smClock', 'node0')).toEqual(['/straggler']);
    expect(on('gpu.3.smClock', 'node1')).toEqual([]);
    expect(on('gpu.0.smClock', 'node0')).toEqual([]);
    expect(on('loss')).toEqual(['/loss_not_finite']);
  });

  it('go on without an end', () => {
    expect(marksOf([LOSS], [{ key: 'loss' }], href)).toEqual([{ min: 1000, max: Infinity, level: 'critical', text: 'NaN', href: '/loss_not_finite' }]);
  });

  it('leave out information', () => {
    expect(marksOf([{ ...FINDING, severity: 'info' }], [{ key: 'gpu.3.smClock' }], href)).toEqual([]);
  });

  it('are those of a time in a replay', () => {
    const marks = marksOf([FINDING, LOSS], [{ key: 'gpu.3.smClock' }, { key: 'loss' }], href);
    expect(marksUntil(marks, 2000).map(({ min, max }) => [min, max])).toEqual([[1000, 2000], [1000, 2000]]);
    expect(marksUntil(marks, 999)).toEqual([]);
    expect(marksUntil(marks, null)).toEqual(marks);
  });

  it('are where points were logged meanwhile, on an axis of steps', () => {
    const marks = marksOf([FINDING], [{ key: 'gpu.3.smClock' }], href);
    const lines = [
      { t: [500, 1000, null, 3000, 3500], at: [1, 2, 3, 4, 5] },
      { t: [900, 1500, 2500], at: [1, null, 7] },
    ];
    expect(marksAt(marks, lines).map(({ min, max }) => [min, max])).toEqual([[2, 7]]);
    expect(marksAt(marks, [{ t: [1, 2], at: [1, 2] }])).toEqual([]);
  });
});
