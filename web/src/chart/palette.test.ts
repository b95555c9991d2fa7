import { describe, expect, it } from 'vitest';
import type { SeriesInfo } from '../base/api';
import { deviceOf, lineColor, PALETTES, slotsOf } from './palette';
import { seriesId } from './points';

function series(key: string, template = key, host = 'node1'): SeriesInfo {
  return { key, template, host, role: 'monitor', unit: '', kind: 'gauge', subject: '', chart: 'chart', text: '', source: '', mlflow: null, zero: false };
}

const gpu = (i: number, host = 'node1'): SeriesInfo => series(`gpu.${i}.temp`, 'gpu.{i}.temp', host);
const slots = (all: SeriesInfo[]): (number | undefined)[] => {
  const slots = slotsOf(all);
  return all.map((series) => slots.get(seriesId(series)));
};

describe('the colour of a series', () => {
  it('is that of its device, whichever devices there are', () => {
    expect(slots([gpu(0), gpu(1), gpu(2)])).toEqual([0, 1, 2]);
    expect(slots([gpu(5), gpu(2)])).toEqual([5, 2]);
  });

  it('is that of its host where a chart compares hosts', () => {
    expect(slots([series('cpu', 'cpu', 'node10'), series('cpu', 'cpu', 'node2')])).toEqual([1, 0]);
  });

  it('differs between devices and hosts', () => {
    expect(new Set(slots([gpu(0, 'a'), gpu(1, 'a'), gpu(0, 'b'), gpu(1, 'b')])).size).toBe(4);
  });

  it('is that of its place where keys differ in their names', () => {
    expect(slots([series('disk.readMBps'), series('disk.writeMBps')])).toEqual([0, 1]);
  });
});

it('a device is the number in place of a template', () => {
  expect(deviceOf(gpu(12))).toBe(12);
  expect(deviceOf(series('disk.vda.in', 'disk.{dev}.in'))).toBeNull();
  expect(deviceOf(series('cpu'))).toBeNull();
});

it.each(PALETTES)('%s has distinct colours, all of them legible', (palette) => {
  for (const dark of [false, true]) {
    const colors = Array.from({ length: 7 }, (_, i) => lineColor(i, dark, palette));
    expect(new Set(colors).size).toBe(7);
    for (const color of colors) expect(contrast(color, dark ? '#161a21' : '#ffffff')).toBeGreaterThan(2.9);
  }
});

function contrast(a: string, b: string): number {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

function luminance(color: string): number {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const part = parseInt(color.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
