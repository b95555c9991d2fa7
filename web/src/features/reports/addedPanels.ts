// Charts, findings and media as panels of reports: with what is shown of them now.

import type { ChartOptions } from '../../chart/viewState';
import type { Range } from '../../chart/points';
import type { Axis } from '../../chart/xAxis';
import { newPanel, type LayoutPanel } from '../workspace/panels/layout';
import type { PanelX } from '../workspace/panel';
import type { Addition } from './addition.svelte';
import { panelOfKind } from './newPanels';
import { queriesOf, settingsOf } from './reportPanel';
import type { ReportPanel } from './reports';

type AddedPanel = Addition['panel'];
interface AddedAxis {
  x: PanelX;
  /** It is logarithmic. */
  log: boolean;
}
type Metric = { source: 'logged' | 'system'; name: string };

/** A report gives a panel more room than a workspace. */
const COLUMNS = 6;
const ROWS = 5;
/** What a panel may read. */
const MAX_METRICS = 50;

/** A panel of a workspace. `names`: what its expressions name. */
export function addedPanel(layout: LayoutPanel, names: readonly Metric[], zoom: Range | null): AddedPanel {
  const { kind, title } = layout;
  const [columns, rows] = kind === 'scalar' ? [3, 3] : [Math.max(COLUMNS, layout.columns), Math.max(ROWS, layout.rows)];
  return { kind, title, columns, rows, settings: settingsOf(layout), queries: kind === 'text' ? [] : queriesOf(layout, names), zoom: zoom && { min: zoom.min, max: zoom.max } };
}

/** A chart of metrics over each other. */
export function addedChart(title: string, metrics: readonly Metric[], { x, log }: AddedAxis, options: Pick<ChartOptions, 'y' | 'smoothing'>, zoom: Range | null): AddedPanel {
  const expressions = metrics.map(({ source, name }) => `${source}:${JSON.stringify(name)}`);
  return addedPanel({ ...newPanel('line'), title, metrics: expressions, x, logx: log, y: options.y, smoothing: options.smoothing }, metrics, zoom);
}

/** The x axis of a chart of one run, and its zoom, as panels have them: times of the elapsed axis are counted from the start. */
export function addedAxis(axis: Axis, zoom: Range | null): AddedAxis & { zoom: Range | null } {
  const { log = false } = axis;
  if (axis.kind === 'elapsed') return { x: 'relative', log, zoom: zoom && { min: zoom.min - axis.start, max: zoom.max - axis.start } };
  return { x: axis.kind === 'metric' ? `metric:${axis.name}` : axis.kind, log, zoom };
}

/** A chart of sampled metrics of one run, with a line for each of its devices: `gpu.0.temp` and `gpu.1.temp` are `gpu.*.temp`. */
export function addedSamples(title: string, keys: readonly string[], axis: Axis, zoom: Range | null, options: Pick<ChartOptions, 'y' | 'smoothing'>): AddedPanel {
  const names = [...new Set(keys.map((key) => key.replace(/(^|\.)\d+(?=\.|$)/g, '$1*')))].map((name) => ({ source: 'system' as const, name }));
  const onAxis = addedAxis(axis, zoom);
  const panel = addedChart(title, names, onAxis, options, onAxis.zoom);
  return { ...panel, settings: { ...panel.settings, scope: 'devices' } };
}

/** The newest values of what is logged, a column each: numbers of the summary. */
export function addedMetrics(fields: readonly string[]): AddedPanel {
  const names = fields.filter((name) => name.startsWith('summary.')).slice(0, MAX_METRICS).map((name) => ({ source: 'logged' as const, name: name.slice('summary.'.length) }));
  return addedPanel({ ...newPanel('table'), columns: 12, metrics: names.map(({ name }) => `logged:${JSON.stringify(name)}`) }, names, null);
}

/** Runs by their fields: `config.lr`, `summary.loss`. What is of the configuration, a panel of this kind has anyway. */
export function addedFields(kind: 'parallel' | 'scatter' | 'importance', fields: readonly string[], across = ''): AddedPanel {
  return addedPanel({ ...newPanel(kind), metrics: [...fields], across }, [], null);
}

/** What is no chart: findings, media. `names`: of what was logged. */
export function addedFacts(kind: ReportPanel['kind'], title: string, names: readonly string[] = []): AddedPanel {
  const { columns, rows, settings } = panelOfKind(kind, []);
  return { kind, title, columns, rows, settings, queries: names.map((name) => ({ source: 'logged', name, pattern: null })), zoom: null };
}
