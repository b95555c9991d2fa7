// The panels that every workspace has: one for each metric that its runs logged, and for each that was sampled.

import { groupBy } from '../../base/groups';
import type { Panel, PanelSection } from './panel';
import type { OverlayMetric } from '../../base/wire';

export const CHARTS = 'charts';
export const SYSTEM = 'system';

/** What people look at first, first. */
const SUBJECTS = ['GPU', 'CPU', 'Memory', 'Disk', 'Network', 'Process'];
const LAST_SUBJECTS = ['Pressure', 'Other', 'Monitor'];
const FIRST_CHARTS = ['GPU utilization', 'GPU memory', 'GPU memory used', 'GPU power', 'GPU temperature', 'CPU', 'Memory', 'Process memory', 'Disk I/O', 'Network'];

const compareNaturally = new Intl.Collator('en', { numeric: true }).compare;

export const chartPanels = (names: readonly string[]): Panel[] =>
  [...names].sort(compareNaturally).map((name) => ({
    id: `logged/${name}`,
    kind: 'line',
    title: name,
    metrics: [{ source: 'logged', key: name }],
    x: null,
    options: {},
    unit: '',
    text: '',
    sources: ['run.log()'],
  }));

/** One section for each part of the machine. */
export function systemSections(metrics: readonly OverlayMetric[]): PanelSection[] {
  const bySubject = groupBy(metrics, ({ subject }) => subject);
  return [...bySubject]
    .sort(([a], [b]) => placeOf(a) - placeOf(b) || compareNaturally(a, b))
    .map(([subject, members]) => ({ id: `${SYSTEM}/${subject}`, title: subject, panels: panelsOf(members) }));
}

function placeOf(subject: string): number {
  const first = SUBJECTS.indexOf(subject);
  if (first >= 0) return first;
  const last = LAST_SUBJECTS.indexOf(subject);
  return last < 0 ? SUBJECTS.length : SUBJECTS.length + 1 + last;
}

function panelsOf(metrics: readonly OverlayMetric[]): Panel[] {
  const charts = groupBy(metrics, ({ chart, unit }) => `${chart}\n${unit}`);
  const panels = [...charts.values()].flatMap((members) => members.map((metric) => ({ metric, panel: panelOf(metric, members.length > 1) })));
  return panels
    .sort((a, b) => importance(a.metric) - importance(b.metric) || compareNaturally(a.panel.title, b.panel.title))
    .map(({ panel }) => panel);
}

function panelOf({ key, unit, chart, text, source }: OverlayMetric, isOneOfSeveral: boolean): Panel {
  const title = isOneOfSeveral ? `${chart}: ${key.replace(/\.?\{\w+\}/g, '')}` : chart;
  return { id: `system/${key}`, kind: 'line', title, metrics: [{ source: 'system', key }], x: null, options: {}, unit, text, sources: source ? [source] : [] };
}

function importance({ chart, kind }: OverlayMetric): number {
  const place = FIRST_CHARTS.indexOf(chart);
  return place < 0 ? FIRST_CHARTS.length + Number(kind === 'counter') : place;
}

/** The panels whose title or metrics have all of the words. */
export function matchingPanels(panels: readonly Panel[], words: string): readonly Panel[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  if (wanted.length === 0) return panels;
  return panels.filter(({ title, metrics }) => {
    const text = [title, ...metrics.map(({ key }) => key)].join(' ').toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
}
