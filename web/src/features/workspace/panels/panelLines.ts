// The lines of a panel: its expressions, for each run or device.

import { nameText, parseExpression, SyntaxProblem, type Expression } from './expression';
import { shownText, type LayoutPanel } from './layout';
import { parsePattern } from './keyPattern';
import { combined } from './combined';
import type { PanelX } from '../panel';
import { known, metricId, unitOf, type KnownMetric, type MetricNames, type SourceLine, type SourceLines, type Subject } from './panelSource';
import { withNotFinite, type Points } from '../../../chart/points';
import { runSlot } from '../../runs/runColour';
import type { OverlayRun } from '../../../base/wire';

/** More panels or lines are not made of one pattern. */
export const MAX_MATCHES = 50;
const MAX_LINES = 500;

/** One line of a panel: an expression of a run, device or rank. */
export interface PanelLine {
  /** The same at every visit: by it, a link hides and pins series. */
  id: string;
  label: string;
  /** Its colour in the palettes. */
  slot: number;
  /** Where colours repeat, lines have different dashes. */
  dashed: boolean;
  /** Which of the panel's expressions it is. */
  metric: number;
  /** The expression, as it is shown. */
  text: string;
  subject: Subject;
  /** What the line is about, in words. */
  subjectLabel: string;
  unit: string;
  points: Points;
  /** It is a mean of runs. */
  ofMany?: boolean;
  /** Where a logged value is not finite. */
  notFinite?: readonly number[] | undefined;
}

export interface PanelMetric {
  text: string;
  expression: Expression;
  metrics: readonly KnownMetric[];
  unit: string;
}

/** The metrics that the expressions need, each once. */
export const neededFor = (metrics: readonly PanelMetric[]): KnownMetric[] => [...new Map(metrics.flatMap((metric) => metric.metrics.map((metric) => [metricId(metric), metric]))).values()];

/** The expressions of a panel, with those across at the end. Throws a SyntaxProblem. */
export function metricsOf(panel: LayoutPanel, names: MetricNames): PanelMetric[] {
  const texts = panel.pattern ? matchesOf(panel.pattern, names).slice(0, MAX_MATCHES) : panel.metrics.filter((text) => text.trim());
  return [...new Set(texts), ...(panel.kind === 'scatter' && panel.across.trim() ? [panel.across] : [])].map((text) => metricOf(text, names));
}

function metricOf(text: string, names: MetricNames): PanelMetric {
  const expression = parseExpression(text);
  const metrics = expression.metrics.map((metric) => known(metric, names));
  return { text, expression, metrics, unit: expression.unit(metrics.map((metric) => unitOf(metric, names))) };
}

/** The metrics whose names match a pattern, as expressions. Throws a SyntaxProblem. */
export function matchesOf(pattern: string, { logged, system }: MetricNames): string[] {
  const matches = parsePattern(pattern);
  const both = new Set(logged);
  return [
    ...logged.filter(matches).map((name) => nameText(name)),
    ...system.filter(matches).map((name) => nameText(name, both.has(name) ? 'system' : null)),
  ];
}

/** The panels that are shown for one of a layout: one for each match of its pattern if that is wanted. */
export function shownPanels(panel: LayoutPanel, names: MetricNames): LayoutPanel[] {
  if (!panel.pattern || !panel.each) return [panel];
  try {
    const matches = matchesOf(panel.pattern, names).slice(0, MAX_MATCHES);
    if (matches.length === 0) return [panel]; // it says that nothing matches
    return matches.map((text) => ({ ...panel, id: `${panel.id}:${text}`, title: '', pattern: '', metrics: [text] }));
  } catch (problem) {
    if (problem instanceof SyntaxProblem) return [panel]; // it says what is wrong
    throw problem;
  }
}

/** What x counts: samples of the system have no steps, so a panel with some is over time. */
export const xOf = (panel: LayoutPanel, metrics: readonly PanelMetric[]): PanelX =>
  panel.x !== 'wall' && metrics.some((metric) => metric.metrics.some(({ source }) => source === 'system')) ? 'relative' : panel.x;

/** The lines of expressions from those of their metrics. `named`: by their runs, in the colours of these. */
export function linesOf(metrics: readonly PanelMetric[], sources: SourceLines, runs: readonly OverlayRun[], named = runs.length > 1): PanelLine[] {
  const lines = metrics.flatMap((metric, index) => {
    const parts = metric.metrics.map((part) => sources.get(metricId(part)) ?? []);
    return joined(parts).map((row) => ({ metric, index, subject: row.subject, points: combined(metric.expression, row.points) }));
  });
  const names = new Map(runs.map(({ id, name }) => [id, name]));
  const label = labelling(lines.map(({ subject }) => subject), names, named);
  const several = new Set(metrics.map(({ text }) => text)).size > 1;
  const ids = new Set<string>();
  return lines.slice(0, MAX_LINES).map(({ metric, index, subject, points }, i) => {
    const about = label(subject);
    const text = shownText(metric.text);
    const own = about && several ? `${about} · ${text}` : about || text;
    const slot = named ? runSlot(subject.run) + COLOURS * index : i;
    return { id: unique(`${idOf(subject)}/${metric.text}`, ids), label: own, slot, dashed: named, metric: index, text, subject, subjectLabel: about || names.get(subject.run) || subject.run, unit: metric.unit, points, ...(isLogged(metric) && { notFinite: withNotFinite(points).notFinite }) };
  });
}

/** Of a single logged metric, a point without a value is one that is not finite; of others it may be a gap. */
const isLogged = ({ metrics }: PanelMetric): boolean => metrics.length === 1 && metrics[0]!.source === 'logged';

/** An id that is not in `ids`, which gets it: two writers of a host may record the same metric. */
function unique(id: string, ids: Set<string>): string {
  let freeId = id;
  for (let i = 2; ids.has(freeId); i++) freeId = `${id}/${i}`;
  ids.add(freeId);
  return freeId;
}

/** Slots in one round of colours: those of the next round are dashed. */
const COLOURS = 10;

export const idOf = ({ run, host, rank, device }: Subject): string => [run, host, rank, device].map((part) => part ?? '').join('/');

interface Row {
  subject: Subject;
  points: Points[];
}

/** For each subject of the most detailed metric, the points of all metrics about it; subjects that one of them lacks are left out. */
function joined(parts: readonly (readonly SourceLine[])[]): Row[] {
  const lead = parts.reduce((most, part) => (part.length > most.length ? part : most), parts[0] ?? []);
  return lead.flatMap(({ subject, points }) => {
    const operands = parts.map((part) => (part === lead ? points : part.find((line) => fits(line.subject, subject))?.points));
    return operands.every((operand) => operand !== undefined) ? [{ subject, points: operands }] : [];
  });
}

/** Whether a line is about a subject, or about something that the subject is a part of. */
const fits = (of: Subject, subject: Subject): boolean =>
  of.run === subject.run &&
  (of.host === null || subject.host === null || of.host === subject.host) &&
  (of.rank === null || subject.rank === null || of.rank === subject.rank) &&
  (of.device === null || subject.device === null || of.device === subject.device);

/** Names subjects by what differs between them. */
function labelling(subjects: readonly Subject[], names: ReadonlyMap<string, string>, named: boolean): (subject: Subject) => string {
  const several = (part: keyof Subject): boolean => new Set(subjects.map((subject) => subject[part])).size > 1;
  const [runs, hosts] = [named, several('host')];
  return ({ run, host, rank, device }) =>
    [runs ? (names.get(run) ?? run) : '', hosts ? (host ?? '') : '', rank === null ? '' : `rank ${rank}`, device === null ? '' : `device ${device}`].filter(Boolean).join(' · ');
}
