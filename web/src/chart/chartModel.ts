// A chart as its pages describe it: lines over an axis, wherever they come from.

import type { Line, Points, Range } from './points';
import type { Pin } from './plot';
import type { ChartOptions } from './viewState';
import type { Axis } from './xAxis';

/** A time in which something was found: a bar at the axis, which leads to what is known of it. */
export interface Mark extends Range {
  level: 'critical' | 'warning';
  text: string;
  href: string;
}

/** A row of the strip below a plot, over the same axis. */
export interface StripRow {
  label: string;
  unit: string;
  /** The value at its upper edge. */
  top: number;
  points: Points;
}

export interface ChartModel {
  /** The same at every visit: by it, a link names the chart. */
  id: string;
  title: string;
  unit: string;
  /** What it shows. */
  text: string;
  /** Where its values come from. */
  sources: readonly string[];
  lines: readonly Line[];
  /** Each line is a device or host, and all measure the same. */
  ofDevices: boolean;
  /** Its lines are counts: many are drawn as their sum. */
  summed?: boolean;
  /** Each line is a run, whose colour is also in a table: the values are named beside the pointer. */
  ofRuns?: boolean;
  axis: Axis;
  range: Range;
  /** The range without a zoom. */
  whole: Range;
  /** Charts with the same name share a crosshair. */
  sync: string;
  note: string;
  pins: readonly Pin[];
  /** Times that are shaded. */
  spans?: readonly Range[];
  marks?: readonly Mark[];
  strip?: readonly StripRow[];
  /** Addresses of the same values as CSV: as many as are shown, and all samples. */
  tables: { shown: string; all: string } | null;
  /** The shown points as CSV, where no address has them: the page computed them. */
  csv?: () => Blob;
  /** Adds it to a report, with what is shown of it. */
  addToReport?: (() => void) | undefined;
  /** Its own options, unless the address has others. */
  preset?: Partial<ChartOptions>;
}
