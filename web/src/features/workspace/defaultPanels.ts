// The panels that every workspace has: one for each metric that its runs logged, and for each that was sampled.

import { groupBy } from '../../base/groups';
import { inKeptOrder } from '../../base/keptOrder';
import type { Panel, PanelSection, PanelX } from './panel';
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

/** A section, and whether it is folded until the user unfolds it. */
export interface ShownSection extends PanelSection {
  x: PanelX;
  usuallyFolded: boolean;
}

/** The sections of logged metrics, then those of the system, without those that have no panels. */
export function shownSections(charts: readonly PanelSection[], x: PanelX, system: readonly PanelSection[], systemX: PanelX): ShownSection[] {
  const isLogged = charts.some(({ panels }) => panels.length > 0);
  return [
    ...charts.map((section) => ({ ...section, x, usuallyFolded: false })),
    ...system.map((section) => ({ ...section, title: `System: ${section.title}`, x: systemX, usuallyFolded: isLogged })),
  ].filter(({ panels }) => panels.length > 0);
}

/** Sections and their panels in the places that they had; what is new comes last. */
export const inKeptPlaces = (before: readonly ShownSection[], now: readonly ShownSection[]): ShownSection[] =>
  inKeptOrder(before, now, ({ id }) => id).map((section) => {
    const earlier = before.find(({ id }) => id === section.id);
    return earlier ? { ...section, panels: inKeptOrder(earlier.panels, section.panels, ({ id }) => id) } : section;
  });

/** Metrics with the same beginning are a section if they are at least so many. */
const LEAST_MEMBERS = 2;

/**
 * The panels of logged metrics by the beginning of their names (`train/loss`), what people look at first, first: what has
 * a goal, losses, accuracies; the epoch, learning rates and norms of gradients are last.
 */
export function chartSections(panels: readonly Panel[], goals: ReadonlySet<string> = new Set()): PanelSection[] {
  const rankOf = ({ metrics }: Panel): number => rank(metrics[0]!.key, goals);
  const sorted = [...panels].sort((a, b) => rankOf(a) - rankOf(b));
  const parts = groupBy(sorted, ({ metrics }) => prefixOf(metrics[0]!.key));
  const others = [...parts].filter(([prefix, members]) => prefix === '' || members.length < LEAST_MEMBERS).flatMap(([, members]) => members);
  const sections = [...parts].flatMap(([prefix, members]): PanelSection[] =>
    prefix !== '' && members.length >= LEAST_MEMBERS ? [{ id: `${CHARTS}/${prefix}`, title: prefix, panels: members }] : [],
  );
  if (others.length > 0) sections.push({ id: CHARTS, title: CHARTS_TITLE, panels: others.sort((a, b) => rankOf(a) - rankOf(b)) });
  // Stable: sections with equally important panels stay in natural order.
  return sections.sort((a, b) => compareNaturally(a.title, b.title)).sort((a, b) => rankOf(a.panels[0]!) - rankOf(b.panels[0]!));
}

const CHARTS_TITLE = 'Charts';
const prefixOf = (name: string): string => (name.includes('/') ? name.slice(0, name.indexOf('/')) : '');

const HELD_OUT = /(?:^|[^a-z])(?:val|valid|validation|eval|evaluation|test|dev)(?:$|[^a-z])/;
const LOSS = /loss|nll|perplexity|ppl/;
const SCORE = /acc(?:$|[^a-z])|accuracy|reward|(?:^|[^a-z])(?:f1|auc|bleu|rouge|iou|map|score|return)(?:$|[^a-z])/;
const LAST = /(?:^|[^a-z])(?:epochs?|step|global_step|iter(?:ation)?|lr|learning_rate|grad_?norm|weight_?norm|param_?norm|momentum)(?:[^a-z].*)?$/;

/** Lower is earlier. */
function rank(name: string, goals: ReadonlySet<string>): number {
  if (goals.has(name)) return 0;
  const text = name.toLowerCase();
  const other = HELD_OUT.test(text) ? 0 : 1;
  if (LOSS.test(text)) return 1 + other;
  if (SCORE.test(text)) return 3 + other;
  return LAST.test(text) ? 6 : 5;
}

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
  const index = FIRST_CHARTS.indexOf(chart);
  return index < 0 ? FIRST_CHARTS.length + Number(kind === 'counter') : index;
}

/** The panels whose title or metrics have all of the words. */
export function matchingPanels(panels: readonly Panel[], words: string): readonly Panel[] {
  const terms = words.toLowerCase().split(/\s+/).filter(Boolean);
  if (terms.length === 0) return panels;
  return panels.filter(({ title, metrics }) => {
    const text = [title, ...metrics.map(({ key }) => key)].join(' ').toLowerCase();
    return terms.every((word) => text.includes(word));
  });
}
