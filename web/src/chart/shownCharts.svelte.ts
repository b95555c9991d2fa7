// The charts of a page, for what is done with all of them: pictures of the whole page, moving from chart to chart.

import { getContext, setContext } from 'svelte';
import type { Mark } from './chartModel';
import type { Pin } from './plot';
import type { Cell } from '../base/csv';
import type { Colors } from './chartImage';
import type { Drawn } from './drawn';
import type { Range } from './points';
import type { Axis } from './xAxis';
import type { YAxis } from './yAxis';

/** A chart as it is shown now. */
export interface ChartSnapshot {
  title: string;
  lines: readonly Drawn[];
  axis: Axis;
  y: YAxis;
  range: Range;
  pins: readonly Pin[];
  marks?: readonly Mark[];
}

/** Anything else that a picture of the page shows. */
export interface DrawnPanel {
  /** An SVG group of the size of a chart. */
  draw: (colors: Colors) => string;
}

/** The values of a panel that the page computed, as rows with a head. */
export interface PanelTable {
  title: string;
  rows: Cell[][];
}

const KEY = Symbol('shown charts');
const WAIT_MS = 100;
const MAX_WAIT_MS = 20_000;

export class ShownCharts {
  /** Every chart is loaded and drawn, not only those in view. */
  everything = $state(false);
  #charts = new Map<Element, () => ChartSnapshot | DrawnPanel>();
  #tables = new Map<Element, () => PanelTable | null>();
  /** What no picture can show. */
  #others = new Set<() => readonly string[]>();
  #loading = new Set<Element>();

  add(element: Element, snapshot: () => ChartSnapshot | DrawnPanel): () => void {
    this.#charts.set(element, snapshot);
    return () => this.#charts.delete(element);
  }

  addTable(element: Element, table: () => PanelTable | null): () => void {
    this.#tables.set(element, table);
    return () => this.#tables.delete(element);
  }

  /** Name what is on the page and in no picture of it. */
  addOther(names: () => readonly string[]): () => void {
    this.#others.add(names);
    return () => this.#others.delete(names);
  }

  get hasTables(): boolean {
    return this.#tables.size > 0;
  }

  /** A chart that has to be loaded before it can be drawn. */
  addLoading(element: Element): () => void {
    this.#loading.add(element);
    return () => this.#loading.delete(element);
  }

  /** All charts of the page from top to bottom, and the names of what is left out: media, and charts that did not load in time. */
  snapshots(): Promise<{ charts: (ChartSnapshot | DrawnPanel)[]; leftOut: string[] }> {
    return this.#whenLoaded((late) => ({
      charts: inOrder(this.#charts).map((snapshot) => snapshot()),
      leftOut: [...late, ...[...this.#others].flatMap((names) => names())],
    }));
  }

  /** The tables of all panels from top to bottom. */
  tables(): Promise<PanelTable[]> {
    return this.#whenLoaded(() => inOrder(this.#tables).flatMap((table) => table() ?? []));
  }

  /** Load every chart; `take` gets the titles of those that did not load in time. */
  async #whenLoaded<T>(take: (late: string[]) => T): Promise<T> {
    this.everything = true;
    try {
      const until = Date.now() + MAX_WAIT_MS;
      do await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
      while (this.#loading.size > 0 && Date.now() < until);
      return take([...this.#loading].map((element) => element.querySelector('h3')?.textContent?.trim() || 'a chart'));
    } finally {
      this.everything = false;
    }
  }
}

function inOrder<T>(of: ReadonlyMap<Element, T>): T[] {
  return [...of].sort(([a], [b]) => (a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1)).map(([, chart]) => chart);
}

export const provideShownCharts = (): ShownCharts => setContext(KEY, new ShownCharts());
export const shownCharts = (): ShownCharts | undefined => getContext<ShownCharts | undefined>(KEY);
