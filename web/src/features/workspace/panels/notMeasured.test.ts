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

it('otherwise says why the sources that could measure it are absent or fail, or that they reported nothing', () => {
  expect(why('gpu.0.temp')).toEqual(['node1 nvidia: it works, but reported no such value', 'node2 nvidia: no NVIDIA driver', 'node2 amd: no AMD GPU']);
  expect(why('network.ib.*.*.errors')).toEqual(['node1 infiniband: no InfiniBand']);
  expect(why('cpu.user')).toEqual(['node1 cpu: it works, but reported no such value', 'node2 cpu: /proc/stat: Permission denied']);
});

it('says nothing about what no source measures, or where there is none', () => {
  expect(why('loss')).toEqual([]);
  expect(why('disk.in')).toEqual([]);
  expect(notMeasured('gpu.0.temp', {})).toEqual([]);
});

const said = (source: string, reason: string, metric: string): string[] => notMeasured(metric, { node1: { [source]: { state: 'on', reason } } }).map((one) => one.reason);

it('finds a metric among several with the same reason', () => {
  const reason = 'fanSpeed, memoryTemp, process.gpu: not supported (GPU 1); gpu: not permitted; gpu.3: lost (GPU-5)';
  expect(said('nvidia', reason, 'gpu.*.memoryTemp')).toEqual(['fanSpeed, memoryTemp, process.gpu: not supported (GPU 1)', 'gpu.3: lost (GPU-5)']);
  expect(said('nvidia', reason, 'gpu.0.fanSpeed')).toEqual(['fanSpeed, memoryTemp, process.gpu: not supported (GPU 1)']);
  expect(said('nvidia', reason, 'gpu.0.gpu')).toEqual(['gpu: not permitted']);
  expect(said('nvidia', reason, 'gpu.process.0.gpu')).toEqual(['fanSpeed, memoryTemp, process.gpu: not supported (GPU 1)', 'gpu: not permitted']);
  expect(said('nvidia', reason, 'gpu.0.temp')).toEqual(['it works, but reported no such value']);
});

it('finds the beginning of a key, also of paths with blanks', () => {
  const reason = 'disk./mnt/TV Series: /mnt/TV Series: not answering; disk./.inodesPercent: the file system does not count inodes';
  expect(said('filesystem', reason, 'disk.*.usagePercent')).toEqual(['disk./mnt/TV Series: /mnt/TV Series: not answering']);
  expect(said('filesystem', reason, 'disk./.inodesPercent')).toEqual(['disk./.inodesPercent: the file system does not count inodes']);
  expect(said('graphcore', 'clock (MHz), average board temp (C): not reported; ipu.3: lost', 'ipu.0.average board temp (C)')).toEqual(['clock (MHz), average board temp (C): not reported']);
  expect(said('tpu', 'throttleScore: only inside; tpu: no program reports TPU metrics', 'tpu.*.dutyCycle')).toEqual(['tpu: no program reports TPU metrics']);
});

it('finds what a rate is derived from', () => {
  expect(said('energy', 'energy.dram: only root may read it', 'power.dram')).toEqual(['energy.dram: only root may read it']);
  expect(said('nvidia', 'throttle.swThermalSeconds: not supported', 'gpu.*.throttle.*Percent')).toEqual(['throttle.swThermalSeconds: not supported']);
  expect(said('pressure', 'io.pressureAvg10, io.pressureSeconds: no file', 'io.pressurePercent')).toEqual(['io.pressureAvg10, io.pressureSeconds: no file']);
});

it('names the program that all readings need', () => {
  expect(said('nvidia', 'NVML: cannot be loaded; fanSpeed: not supported', 'gpu.0.temp')).toEqual(['NVML: cannot be loaded']);
});
