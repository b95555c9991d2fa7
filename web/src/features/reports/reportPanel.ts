// A panel of a report as the panels of a workspace have it: its settings, and the lines of the server's answer.

import type { OverlayRun, PanelData, PanelRun } from '../../base/wire';
import { fromLogged } from '../../chart/loggedPoints';
import { centred } from '../workspace/overlay';
import type { PanelX } from '../workspace/panel';
import { fieldsOf, isOfFields } from '../workspace/panels/fields';
import { newPanel, type LayoutPanel, type PanelKind } from '../workspace/panels/layout';
import { linesOf, metricsOf, neededFor, type PanelLine } from '../workspace/panels/panelLines';
import { deviceLines, metricId, namesOf, type SourceLine } from '../workspace/panels/panelSource';
import type { ReportPanel } from './reports';

/** Kinds that draw the lines of metrics, and text. */
const DRAWN: readonly string[] = ['line', 'bar', 'scatter', 'histogram', 'percentile', 'scalar', 'table', 'text'] satisfies PanelKind[];

/** Whether a panel is drawn from lines as one of a workspace is. */
export const isLayoutKind = (kind: string): kind is PanelKind => DRAWN.includes(kind);

/** The panel with its settings, as panels of a workspace are drawn. Settings that are missing or wrong are the usual ones. */
export function layoutOf(panel: ReportPanel): LayoutPanel {
  const kind: PanelKind = isLayoutKind(panel.kind) ? panel.kind : 'line';
  const usual = newPanel(kind) as unknown as Record<string, unknown>;
  const settings = Object.entries(panel.settings).filter(([name, value]) => name in usual && sameType(value, usual[name]));
  const { id, title, columns, rows } = panel;
  return { ...(usual as unknown as LayoutPanel), ...Object.fromEntries(settings), id, kind, title, columns, rows };
}

const sameType = (value: unknown, usual: unknown): boolean =>
  usual === null || value === null ? typeof value === 'object' : Array.isArray(value) === Array.isArray(usual) && typeof value === typeof usual;

/** The settings of a panel of a workspace, as reports have them. */
export function settingsOf({ metrics, pattern, each, x, logx, across, scope, statistic, points, percentiles, y, smoothing, text }: LayoutPanel): ReportPanel['settings'] {
  return { metrics: [...metrics], pattern, each, x, logx, across, scope, statistic, points, percentiles: [...percentiles], y, smoothing: smoothing && { ...smoothing }, text };
}

const isTime = (x: string): boolean => x === 'relative' || x === 'wall';

const asRun = ({ id, name, state, started_ms, end_ms }: PanelRun): OverlayRun => ({ id, name, state, started_ms, end_ms });

/** The lines of an answer: of each run and group, or of each device. Throws a SyntaxProblem. */
export function answeredLines(panel: LayoutPanel, data: PanelData): PanelLine[] {
  const names = namesOf(data.names.logged, data.names.system);
  const metrics = metricsOf(panel, names);
  const x = (data.x ?? panel.x) as PanelX;
  const runs = data.runs.map(asRun);
  const linesById = new Map<string, SourceLine[]>();
  for (const metric of neededFor(metrics)) linesById.set(metricId(metric), linesOfRuns(data, metricId(metric), x, panel.logx));
  for (const run of runs) {
    const devices = data.devices[run.id];
    if (!devices) continue;
    const logged = devices.logged && fromLogged(devices.logged);
    for (const metric of neededFor(metrics)) linesById.get(metricId(metric))!.push(...deviceLines(metric, x, run, devices.sampled, logged));
  }
  const colors = new Map(data.runs.flatMap(({ id, color }) => (color === null ? [] : [[id, color] as const])));
  return linesOf(metrics, linesById, runs).map((line) => {
    const slot = colors.get(line.subject.run);
    return slot === undefined ? line : { ...line, slot };
  });
}

function linesOfRuns(data: PanelData, id: string, x: string, log: boolean): SourceLine[] {
  return (data.lines[id] ?? []).flatMap(({ x: along, width, lines }) =>
    lines.map(({ run, y, min, max, n }) => {
      const points = { x: along, y, low: min, high: max, n };
      return { subject: { run, host: null, rank: null, device: null }, points: isTime(x) && width !== null && !log ? centred(points, width) : points };
    }),
  );
}

/** What the server may be asked for the panel: all metrics that its expressions name, or the pattern. */
export function queriesOf(panel: LayoutPanel, names: readonly { source: 'logged' | 'system'; name: string }[]): ReportPanel['queries'] {
  if (isOfFields(panel)) return fieldsOf(panel).flatMap(queryOfField);
  const across = panel.x.startsWith('metric:') ? [{ source: 'logged' as const, name: panel.x.slice('metric:'.length) }] : [];
  if (panel.pattern) return [{ source: 'logged', name: null, pattern: panel.pattern }, { source: 'system', name: null, pattern: panel.pattern }, ...across.map((query) => ({ ...query, pattern: null }))];
  const unique = new Map([...names, ...across].map((query) => [`${query.source}:${query.name}`, query]));
  return [...unique.values()].map(({ source, name }) => ({ source, name, pattern: null }));
}

/** A number of runs as a query; what is of the configuration needs none. */
function queryOfField(field: string): ReportPanel['queries'] {
  const [section, ...rest] = field.split('.');
  if (section !== 'summary' && section !== 'system') return [];
  return [{ source: section === 'summary' ? 'logged' : 'system', name: rest.join('.'), pattern: null }];
}
