// Panels of a workspace as data: what a section shows, without the values.

import type { ChartOptions } from '../../chart/viewState';

/** What the x axis of a panel counts. */
export type PanelX = 'step' | 'relative' | 'wall' | `metric:${string}`;

/** A metric of a panel. `key`: the name of a logged metric, or a glob over keys of the system, whose series are reduced to one line a run. */
export interface PanelMetric {
  source: 'logged' | 'system';
  key: string;
}

export type PanelKind = 'line';

export interface Panel {
  /** Unique in a workspace, and the same at every visit: by it, addresses name the panel. */
  id: string;
  kind: PanelKind;
  title: string;
  metrics: readonly PanelMetric[];
  /** null: that of the page. */
  x: PanelX | null;
  /** Those that differ from the page's. */
  options: Partial<ChartOptions>;
  unit: string;
  /** What it shows. */
  text: string;
  /** Where its values come from. */
  sources: readonly string[];
}

export interface PanelSection {
  id: string;
  title: string;
  panels: readonly Panel[];
}
