import { describe, expect, it } from 'vitest';
import type { PlannedSeries, Section } from './chartPlan';
import { deviceLabel, grouped, ofDevices, ranksOfDevices } from './devices';
import type { Line } from '../../../chart/points';
import type { Rank } from '../../../base/wire';

function gpu(host: string, device: number, key = `gpu.${device}.gpu`): PlannedSeries {
  return { key, host, role: 'monitor', label: `${host} · gpu ${device}`, text: '', device, slot: device, mlflow: null, factor: 1 };
}

const rank = (host: string, number: number, local: number): Rank => ({
  host,
  pid: 1,
  rank: number,
  local_rank: local,
  world_size: 4,
  exit_code: null,
  signal: null,
  out_of_memory: null,
  ended_ms: null,
});
const DEVICES = [gpu('a', 0), gpu('a', 1), gpu('b', 0), gpu('b', 1)];
const RANKS = [rank('a', 0, 0), rank('a', 1, 1), rank('b', 2, 0), rank('b', 3, 1)];

describe('the rank of a device', () => {
  it('is that with its number as local rank', () => {
    const known = ranksOfDevices(RANKS, DEVICES);
    expect(DEVICES.map((device) => deviceLabel(device, known))).toEqual([
      'a · gpu 0 (rank 0)',
      'a · gpu 1 (rank 1)',
      'b · gpu 0 (rank 2)',
      'b · gpu 1 (rank 3)',
    ]);
  });

  it('is not guessed where a host has more devices than ranks', () => {
    expect(ranksOfDevices(RANKS.slice(0, 1), DEVICES).size).toBe(0);
    const onlyB = ranksOfDevices(RANKS.slice(1), DEVICES);
    expect([...onlyB.values()]).toEqual([2, 3]);
  });

  it('is nothing that a processor core has', () => {
    const core = gpu('a', 0, 'cpu.0.cpu_percent');
    expect(deviceLabel(core, ranksOfDevices(RANKS, DEVICES))).toBe('a · gpu 0');
  });
});

it('a filter keeps what it names', () => {
  const cpu = { ...gpu('a', 0, 'cpu'), device: null };
  const chart = { id: 'x', title: 'x', unit: '', text: '', sources: [], patterns: [], quiet: false, important: false, summed: false, ofDevices: true };
  const sections: Section[] = [{ title: 'GPU', charts: [{ ...chart, series: DEVICES }, { ...chart, id: 'cpu', series: [cpu] }] }];
  const ranks = ranksOfDevices(RANKS, DEVICES);
  const labels = (filter: { rank: number | null; device: number | null }): unknown =>
    ofDevices(sections, { host: null, ...filter }, ranks).map(({ charts }) => charts.map(({ series }) => series.map(({ label }) => label)));
  expect(labels({ rank: null, device: 1 })).toEqual([[['a · gpu 1', 'b · gpu 1']]]);
  expect(labels({ rank: 2, device: null })).toEqual([[['b · gpu 0']]]);
  expect(labels({ rank: 9, device: null })).toEqual([]);
  expect(ofDevices(sections, { host: null, rank: null, device: null }, ranks)).toEqual(sections);
});

describe('grouped lines', () => {
  const lines: Line[] = DEVICES.map(({ label }, i) => ({ id: label, label, slot: i, points: { x: [0], y: [10 * i], low: null, high: null, n: null } }));
  const ranks = ranksOfDevices(RANKS, DEVICES);

  it('are the mean of each node, from the lowest to the highest', () => {
    const means = grouped(lines, DEVICES, 'node', ranks);
    expect(means.map(({ label }) => label)).toEqual(['a (mean of 2)', 'b (mean of 2)']);
    expect(means[1]!.points).toMatchObject({ y: [25], low: [20], high: [30] });
  });

  it('are of the same device of all nodes, or of the rank', () => {
    expect(grouped(lines, DEVICES, 'device', ranks).map(({ label, slot }) => [label, slot])).toEqual([
      ['device 0 (mean of 2)', 0],
      ['device 1 (mean of 2)', 1],
    ]);
    expect(grouped(lines, DEVICES, 'rank', ranks).map(({ label }) => label)).toEqual(['rank 0', 'rank 1', 'rank 2', 'rank 3']);
    expect(grouped(lines, DEVICES, 'rank', new Map()).map(({ id }) => id)).toEqual(lines.map(({ id }) => id));
  });
});
