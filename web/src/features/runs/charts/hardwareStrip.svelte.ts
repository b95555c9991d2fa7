// The hardware under the logged charts of a run: one request for all of them, put on their x axis.

import { get, type RunKey, type SeriesInfo } from '../../../base/api';
import { poll } from '../../../base/polling';
import type { Overlay } from '../../../base/wire';
import type { StripRow } from '../../../chart/chartModel';
import type { Points, Range } from '../../../chart/points';
import { onAxisOf, type Pairs } from './mapping';

const [POINTS, PAUSE_MS, EVERY_MS] = [400, 150, 15_000];
const SHOWN_KEY = 'runvitals.hardwareStrip';

interface StripMetric {
  key: string;
  label: string;
  unit: string;
}

/** The metrics of the strip, of the first kind of hardware that a run has. */
const KINDS: readonly (readonly StripMetric[])[] = [
  [
    { key: 'gpu.{i}.gpu', label: 'GPU', unit: '%' },
    { key: 'gpu.{i}.memoryAllocated', label: 'memory', unit: '%' },
    { key: 'gpu.{i}.powerWatts', label: 'power', unit: 'W' },
  ],
  [
    { key: 'tpu.{i}.dutyCycle', label: 'TPU', unit: '%' },
    { key: 'tpu.{i}.memoryUsage', label: 'memory', unit: '%' },
  ],
  [{ key: 'trn.{core}.neuroncore_utilization', label: 'Neuron', unit: '%' }],
  [
    { key: 'cpu', label: 'CPU', unit: '%' },
    { key: 'memory_percent', label: 'memory', unit: '%' },
  ],
];

const matches = ({ key }: StripMetric, series: readonly SeriesInfo[]): boolean => {
  const [before = '', after = null] = key.split(/\{\w+\}/);
  return series.some((item) => (after === null ? item.key === key : item.key.startsWith(before) && item.key.endsWith(after) && !item.key.slice(before.length, -after.length).includes('.')));
};

/** What a strip shows of a run with these series. */
export function stripMetrics(series: readonly SeriesInfo[]): StripMetric[] {
  const kind = KINDS.find((metrics) => metrics.some((metric) => matches(metric, series))) ?? [];
  return kind.filter((metric) => matches(metric, series));
}

export class HardwareStrip {
  /** Whether it is shown, on all pages of this browser. */
  shown = $state(localStorage.getItem(SHOWN_KEY) === 'yes');
  /** Over time. */
  #rows = $state.raw<StripRow[]>([]);

  constructor(private readonly key: RunKey) {}

  setShown(isShown: boolean): void {
    this.shown = isShown;
    localStorage.setItem(SHOWN_KEY, isShown ? 'yes' : 'no');
  }

  /** Load it for some times, or all; while a run is running again and again. Returns what ends that. `logFrom`: the zero of a logarithmic axis. */
  follow(metrics: readonly StripMetric[], times: Range | null, running: boolean, logFrom: number | null): () => void {
    let stop = (): void => undefined;
    const load = (signal: AbortSignal): Promise<boolean> => this.#load(metrics, times, logFrom, signal);
    const timer = setTimeout(() => {
      let loaded = false;
      stop = poll(
        async (signal) => void (loaded = await load(signal)),
        () => (running || !loaded ? EVERY_MS : null),
      );
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      stop();
    };
  }

  /** Resolves to whether it was loaded. */
  async #load(metrics: readonly StripMetric[], times: Range | null, logFrom: number | null, signal: AbortSignal): Promise<boolean> {
    const zero = logFrom ?? 0;
    const part = times && { x0: Math.floor(times.min - zero), x1: Math.ceil(times.max - zero) };
    const axis = logFrom === null ? { x: 'wall' } : { x: 'relative', scale: 'log' };
    const params = { runs: [this.key.id], entity: this.key.entity, keys: metrics.map(({ key }) => key), ...axis, points: POINTS, extremes: 'false', ...part };
    try {
      const answer = await get<Overlay>('overlay/system', params, signal);
      this.#rows = metrics.map((metric) => rowOf(metric, answer, zero));
      return true;
    } catch {
      return false; // it adds to charts, which say themselves that the server does not respond
    }
  }

  /** Its rows on the axis of a chart, empty until they are loaded. `pairs`: which times belong to which places; null: the axis is time. */
  on(metrics: readonly StripMetric[], pairs: Pairs | null): StripRow[] {
    const rows = this.#rows.length > 0 ? this.#rows : metrics.map((metric) => emptyRow(metric));
    if (pairs === null) return rows;
    const positions = pairs.to.map((position) => position ?? NaN);
    const times = pairs.from.map((time, i) => (Number.isNaN(positions[i]) ? null : time));
    return rows.map((row) => ({ ...row, points: onAxisOf(row.points, times, positions) }));
  }
}

const emptyRow = ({ label, unit }: StripMetric): StripRow => ({ label, unit, top: 1, points: { x: [], y: [], low: null, high: null, n: null } });

function rowOf(metric: StripMetric, answer: Overlay, zero: number): StripRow {
  const { key, label, unit } = metric;
  const answered = answer.keys.find((item) => item.key === key);
  const group = answered?.groups[0];
  if (!group) return emptyRow(metric);
  const half = (answered.width ?? 0) / 2;
  const points: Points = { x: group.x.map((time) => time + zero + half), y: group.lines[0]!.y, low: null, high: null, n: null };
  const highest = points.y.reduce<number>((most, value) => Math.max(most, value ?? 0), 0);
  return { label, unit, top: unit === '%' ? Math.max(100, highest) : highest || 1, points };
}
