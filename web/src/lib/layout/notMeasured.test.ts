import { expect, it } from 'vitest';
import { notMeasured } from './notMeasured';

const SOURCES = {
  node1: {
    cpu: { state: 'on' },
    thermal: { state: 'on', reason: 'cpu.avg_temp: no sensor for the CPU' },
    infiniband: { state: 'absent', reason: 'no InfiniBand' },
    nvidia: { state: 'on', reason: 'powerWatts: not supported (GPU 0); not permitted (GPU 1); gpu.process: hidden by the container' },
    amd: { state: 'absent', reason: 'no AMD GPU' },
  },
  node2: { nvidia: { state: 'absent', reason: 'no NVIDIA driver' }, amd: { state: 'absent', reason: 'no AMD GPU' }, cpu: { state: 'failing', reason: '/proc/stat: Permission denied' } },
};

const why = (metric: string): string[] => notMeasured(metric, SOURCES).map(({ host, name, reason }) => `${host} ${name}: ${reason}`);

it('says what the source said about the metric', () => {
  expect(why('gpu.*.powerWatts')).toEqual(['node1 nvidia: powerWatts: not supported (GPU 0); not permitted (GPU 1)']);
  expect(why('gpu.process.*.memoryAllocated')).toEqual(['node1 nvidia: gpu.process: hidden by the container']);
  expect(why('cpu.avg_temp')).toEqual(['node1 thermal: cpu.avg_temp: no sensor for the CPU']);
});

it('otherwise says why the sources that could measure it are absent or fail', () => {
  expect(why('gpu.0.temp')).toEqual(['node2 nvidia: no NVIDIA driver', 'node2 amd: no AMD GPU']);
  expect(why('network.ib.*.*.errors')).toEqual(['node1 infiniband: no InfiniBand']);
  expect(why('cpu.user')).toEqual(['node2 cpu: /proc/stat: Permission denied']);
});

it('says nothing about what no source measures, or where none said anything', () => {
  expect(why('loss')).toEqual([]);
  expect(why('disk.in')).toEqual([]);
  expect(notMeasured('gpu.0.temp', {})).toEqual([]);
});
