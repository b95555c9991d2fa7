// The charts of a host: its devices and itself, over the runs that were on it.

import { deviceName } from './hosts';
import type { Drawn } from '../../chart/drawn';
import { lineColor, type PaletteName } from '../../chart/palette';
import type { HostSeries } from '../../base/wire';

interface ChartOf {
  title: string;
  unit: string;
  /** What to request. */
  keys: string[];
  /** Which series belong to it; the group is the device. */
  pattern: RegExp;
}

const CHARTS: readonly ChartOf[] = [
  {
    title: 'Device use',
    unit: '%',
    keys: ['gpu.*.gpu', 'tpu.*.dutyCycle', 'trn.*.neuroncore_utilization', 'ipu.*.ipu utilisation (%)'],
    pattern: /^(?:gpu\.(\d+)\.gpu|tpu\.(\d+)\.dutyCycle|trn\.(\d+)\.neuroncore_utilization|ipu\.(.+)\.ipu utilisation \(%\))$/,
  },
  { title: 'Device memory', unit: '%', keys: ['gpu.*.memoryAllocated', 'tpu.*.memoryUsage'], pattern: /^(?:gpu|tpu)\.(\d+)\.memory(?:Allocated|Usage)$/ },
  { title: 'Device power', unit: 'W', keys: ['gpu.*.powerWatts', 'ipu.*.ipu power (W)'], pattern: /^(?:gpu\.(\d+)\.powerWatts|ipu\.(.+)\.ipu power \(W\))$/ },
  { title: 'Device temperature', unit: '°C', keys: ['gpu.*.temp', 'ipu.*.average die temp (C)'], pattern: /^(?:gpu\.(\d+)\.temp|ipu\.(.+)\.average die temp \(C\))$/ },
  { title: 'CPU', unit: '%', keys: ['cpu.mean', 'cpu'], pattern: /^cpu(?:\.mean)?$/ },
  { title: 'Memory', unit: '%', keys: ['memory_percent'], pattern: /^memory_percent$/ },
];

export const CHART_KEYS: string[] = CHARTS.flatMap(({ keys }) => keys);

export interface HostChart {
  title: string;
  unit: string;
  lines: Drawn[];
}

const kindOf = (key: string): string => key.split('.', 1)[0]!;

/** The charts that have values, a line for each device. A gap is where no run measured. */
export function hostCharts(answer: HostSeries, dark: boolean, palette: PaletteName): HostChart[] {
  // `cpu` is the use by the run's processes: it stands for the machine only where nothing else was recorded.
  const hasMean = answer.series.some(({ key }) => key === 'cpu.mean');
  const all = answer.series.filter(({ key }) => key !== 'cpu' || !hasMean);
  return CHARTS.map(({ title, unit, pattern }) => {
    const members = all
      .map((series) => ({ series, match: pattern.exec(series.key) }))
      .filter(({ match }) => match !== null)
      .map(({ series, match }) => ({ series, device: match!.slice(1).find((part) => part !== undefined) ?? '' }))
      .sort((a, b) => a.device.localeCompare(b.device, 'en', { numeric: true }));
    const kinds = new Set(members.map(({ series }) => kindOf(series.key)));
    const lines = members.map(
      ({ series, device }, i): Drawn => ({
        id: series.key,
        label: device === '' ? title : kinds.size > 1 ? deviceName({ kind: kindOf(series.key), index: device }) : `device ${device}`,
        color: lineColor(/^\d+$/.test(device) ? Number(device) : i, dark, palette),
        points: { x: series.t, y: series.value, low: series.min, high: series.max, n: null },
        band: members.length === 1,
        raw: null,
        width: 1.4,
        faded: false,
        dash: [],
      }),
    );
    return { title, unit, lines };
  }).filter(({ lines }) => lines.length > 0);
}
