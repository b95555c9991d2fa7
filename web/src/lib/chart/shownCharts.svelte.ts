// The charts of a page, for what is done with all of them: pictures of the whole page, moving from chart to chart.

import { getContext, setContext } from 'svelte';
import type { Range } from '../runData.svelte';
import type { Pin } from '../plot';
import type { Drawn } from './drawn';
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
}

const KEY = Symbol('shown charts');
const WAIT_MS = 100;
const LONGEST_WAIT_MS = 20_000;

export class ShownCharts {
  /** Every chart is loaded and drawn, not only those in view. */
  everything = $state(false);
  #charts = new Map<Element, () => ChartSnapshot>();
  #loading = new Set<Element>();

  add(element: Element, snapshot: () => ChartSnapshot): () => void {
    this.#charts.set(element, snapshot);
    return () => this.#charts.delete(element);
  }

  /** A chart that has to be loaded before it can be drawn. */
  addLoading(element: Element): () => void {
    this.#loading.add(element);
    return () => this.#loading.delete(element);
  }

  /** All charts of the page from top to bottom; those that do not load in time are left out. */
  async snapshots(): Promise<ChartSnapshot[]> {
    this.everything = true;
    try {
      const until = Date.now() + LONGEST_WAIT_MS;
      do await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
      while (this.#loading.size > 0 && Date.now() < until);
      const inOrder = [...this.#charts].sort(([a], [b]) => (a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1));
      return inOrder.map(([, snapshot]) => snapshot());
    } finally {
      this.everything = false;
    }
  }
}

export const provideShownCharts = (): ShownCharts => setContext(KEY, new ShownCharts());
export const shownCharts = (): ShownCharts | undefined => getContext<ShownCharts | undefined>(KEY);
