// Sections and panels that a user arranged for a project. A layout is never changed: each change makes a new one.

import { newId } from '../../../base/ids';
import type { SmoothingChoice, YScale } from '../../../chart/viewState';
import type { PanelX } from '../panel';

export const PANEL_KINDS = ['line', 'bar', 'scatter', 'histogram', 'percentile', 'scalar', 'table', 'parallel', 'importance', 'text'] as const;
export type PanelKind = (typeof PANEL_KINDS)[number];

export const PANEL_NAMES: Record<PanelKind, string> = {
  line: 'Lines',
  bar: 'Bars',
  scatter: 'Scatter',
  histogram: 'Histogram',
  percentile: 'Percentiles',
  scalar: 'Number',
  table: 'Table',
  parallel: 'Parallel coordinates',
  importance: 'Importance of parameters',
  text: 'Text',
};

export const STATISTICS = ['last', 'min', 'mean', 'max'] as const;
export type Statistic = (typeof STATISTICS)[number];

export const SCOPES = ['runs', 'devices'] as const;
/** Whether a run is one line, with the mean of its devices and ranks, or each of those is a line. */
export type Scope = (typeof SCOPES)[number];

export interface LayoutPanel {
  /** Unique in its layout. */
  id: string;
  kind: PanelKind;
  /** Empty: named after what it shows. */
  title: string;
  /** Its size in the grid. */
  columns: number;
  rows: number;
  /** Expressions of metrics; of parallel coordinates the fields on the axes, of importance the number. */
  metrics: readonly string[];
  /** Metrics are all whose names match this regular expression, instead of `metrics`. */
  pattern: string;
  /** A panel for each match of the pattern, not all of them in one. */
  each: boolean;
  x: PanelX;
  /** Its x axis is logarithmic. */
  logx: boolean;
  /** The expression across, of a scatter plot; of parallel coordinates the field of the colours. */
  across: string;
  scope: Scope;
  statistic: Statistic;
  /** Of a scatter plot or histogram: every point, not one statistic of each line. */
  points: boolean;
  percentiles: readonly number[];
  y: YScale;
  smoothing: SmoothingChoice | null;
  /** Markdown. */
  text: string;
}

export interface LayoutSection {
  id: string;
  title: string;
  folded: boolean;
  panels: readonly LayoutPanel[];
}

export interface Layout {
  sections: readonly LayoutSection[];
}

export const COLUMNS = 12;
export const MIN_COLUMNS = 2;
export const MIN_ROWS = 2;
export const MAX_ROWS = 16;
export const MAX_SECTIONS = 50;
export const MAX_PANELS = 200;
export const MAX_TITLE = 200;

/** Letters of an expression, and of a pattern. */
export const MAX_EXPRESSION = 500;
export const MAX_PATTERN = 200;

export const EMPTY: Layout = { sections: [] };

export function newPanel(kind: PanelKind = 'line'): LayoutPanel {
  const small = kind === 'scalar';
  return {
    id: newId(),
    kind,
    title: '',
    columns: small ? 2 : kind === 'parallel' ? 12 : 4,
    rows: small ? 2 : 4,
    metrics: [],
    pattern: '',
    each: false,
    x: 'step',
    logx: false,
    across: '',
    scope: 'runs',
    statistic: 'last',
    points: kind === 'histogram',
    percentiles: [5, 25, 50, 75, 95],
    y: 'auto',
    smoothing: null,
    text: '',
  };
}

export const allPanels = (layout: Layout): LayoutPanel[] => layout.sections.flatMap(({ panels }) => panels);
export const hasRoom = (layout: Layout): boolean => allPanels(layout).length < MAX_PANELS;

export function addSection(layout: Layout, title: string): Layout {
  if (layout.sections.length >= MAX_SECTIONS) return layout;
  return { sections: [...layout.sections, { id: newId(), title, folded: false, panels: [] }] };
}

export const changeSection = (layout: Layout, id: string, changes: Partial<Omit<LayoutSection, 'id'>>): Layout => ({
  sections: layout.sections.map((section) => (section.id === id ? { ...section, ...changes } : section)),
});

export const removeSection = (layout: Layout, id: string): Layout => ({ sections: layout.sections.filter((section) => section.id !== id) });

/** Move a section up (negative) or down; it stays where there is no further place. */
export function moveSection(layout: Layout, id: string, by: number): Layout {
  const from = layout.sections.findIndex((section) => section.id === id);
  const to = Math.min(layout.sections.length - 1, Math.max(0, from + by));
  if (from < 0 || from === to) return layout;
  const sections = layout.sections.filter((section) => section.id !== id);
  sections.splice(to, 0, layout.sections[from]!);
  return { sections };
}

/** Add a panel to a section, or to a new one if there is no such section. */
export function addPanel(layout: Layout, panel: LayoutPanel, section: string | null = null): Layout {
  if (!hasRoom(layout)) return layout;
  const target = layout.sections.find(({ id }) => id === section) ?? layout.sections[layout.sections.length - 1];
  if (!target) return { sections: [{ id: newId(), title: 'Panels', folded: false, panels: [panel] }] };
  return changeSection(layout, target.id, { folded: false, panels: [...target.panels, panel] });
}

const withPanels = (layout: Layout, change: (panels: readonly LayoutPanel[]) => readonly LayoutPanel[]): Layout => ({
  sections: layout.sections.map((section) => ({ ...section, panels: change(section.panels) })),
});

/** Put a panel in the place of the one with its id. */
export const changePanel = (layout: Layout, panel: LayoutPanel): Layout =>
  withPanels(layout, (panels) => panels.map((item) => (item.id === panel.id ? panel : item)));

export const removePanel = (layout: Layout, id: string): Layout => withPanels(layout, (panels) => panels.filter((panel) => panel.id !== id));

/** The size that a panel can have. */
export const clampSize = (columns: number, rows: number): { columns: number; rows: number } => ({
  columns: Math.min(COLUMNS, Math.max(MIN_COLUMNS, Math.round(columns))),
  rows: Math.min(MAX_ROWS, Math.max(MIN_ROWS, Math.round(rows))),
});

/** Where a panel is: its section and its place in it. */
export interface Place {
  section: string;
  index: number;
}

export function placeOf(layout: Layout, id: string): Place | null {
  for (const section of layout.sections) {
    const index = section.panels.findIndex((panel) => panel.id === id);
    if (index >= 0) return { section: section.id, index };
  }
  return null;
}

/** Move a panel to a place, counted without the panel itself. */
export function movePanel(layout: Layout, id: string, to: Place): Layout {
  const panel = allPanels(layout).find((item) => item.id === id);
  if (!panel || !layout.sections.some((section) => section.id === to.section)) return layout;
  return {
    sections: layout.sections.map((section) => {
      const panels = section.panels.filter((panel) => panel.id !== id);
      if (section.id === to.section) panels.splice(Math.min(to.index, panels.length), 0, panel);
      return { ...section, panels };
    }),
  };
}

/** Move a panel one place back or on, into the next section at the end of its own. */
export function stepPanel(layout: Layout, id: string, by: 1 | -1): Layout {
  const position = placeOf(layout, id);
  if (!position) return layout;
  const at = layout.sections.findIndex((section) => section.id === position.section);
  const index = position.index + by;
  if (index >= 0 && index < layout.sections[at]!.panels.length) return movePanel(layout, id, { section: position.section, index });
  const next = layout.sections[at + by];
  return next ? movePanel(layout, id, { section: next.id, index: by > 0 ? 0 : next.panels.length }) : layout;
}

/** An expression as it is shown: a name that is all of it needs no quotes, and not its source. */
export const shownText = (text: string): string => /^(?:logged:|system:)?"((?:[^"\\]|\\["\\])*)"$/.exec(text)?.[1]!.replace(/\\(.)/g, '$1') ?? text;

/** Of kinds that show something before anything is chosen. */
const USUAL_TITLES: Partial<Record<PanelKind, string>> = { parallel: PANEL_NAMES.parallel, importance: PANEL_NAMES.importance };

export const titleOf = (panel: LayoutPanel): string =>
  panel.title || (panel.kind === 'importance' && panel.metrics.length > 0 ? `Importance for ${shownText(panel.metrics[0]!)}` : panel.pattern ? `Metrics like ${panel.pattern}` : panel.kind === 'text' ? 'Text' : panel.metrics.filter(Boolean).map(shownText).join(', ')) || USUAL_TITLES[panel.kind] || 'New panel';
