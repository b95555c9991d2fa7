// The state of a page with charts: in its address, except for what a user prefers everywhere.

import { untrack } from 'svelte';
import { PALETTES, type PaletteName } from './palette';
import { here } from '../base/route.svelte';
import type { Range } from './points';
import {
  chartOptionChanges,
  chartState,
  chartStateText,
  metricZoomOf,
  optionChanges,
  pageOptions,
  selectedSteps,
  selectedTimes,
  selectionChanges,
  seriesChanges,
  zoomOf,
  type ChartOptions,
  type ChartState,
} from './viewState';

const PALETTE_KEY = 'runvitals.palette';

class ChartView {
  options = $derived(pageOptions(here.query));
  #zoomText = $derived(`${here.query.get('from')} ${here.query.get('to')}`);
  /** The same object until the zoom changes: charts are not drawn again when something else in the address does. */
  zoom = $derived.by(() => (void this.#zoomText, untrack(() => zoomOf(here.query))));
  /** Whether charts mark the times of what was found. */
  marks = $derived(here.query.get('marks') !== 'off');
  /** Whether the x axis is logarithmic, where it can be. */
  logX = $derived(here.query.get('logx') === '1');
  /** The chart that fills the window. */
  enlarged = $derived(here.query.get('open'));
  palette = $state<PaletteName>(keptPalette());

  /** `preset`: options of the chart where the address has none. */
  state(chart: string, preset: Partial<ChartOptions> = {}): ChartState {
    return chartState(here.query, chart, preset);
  }

  /** Changes if and only if the state of the chart may have. */
  stateText(chart: string): string {
    return chartStateText(here.query, chart);
  }

  setOptions(options: Partial<ChartOptions>): void {
    here.set(optionChanges(options));
  }

  /** Options of one chart only; null: those of all charts again. */
  setChartOptions(chart: string, options: Partial<ChartOptions> | null): void {
    here.set(chartOptionChanges(here.query, chart, options));
  }

  toggle(chart: string, choice: 'hide' | 'pin', series: string): void {
    const { hidden, pinned } = this.state(chart);
    const named = new Set(choice === 'hide' ? hidden : pinned);
    if (!named.delete(series)) named.add(series);
    here.set(seriesChanges(here.query, chart, choice, [...named]));
  }

  /** Hide all series but these. */
  showOnly(chart: string, all: readonly string[], shownIds: readonly string[]): void {
    const hidden = all.filter((id) => !shownIds.includes(id));
    here.set(seriesChanges(here.query, chart, 'hide', hidden));
  }

  setMarks(areShown: boolean): void {
    here.set({ marks: areShown ? null : 'off' });
  }

  setZoom(zoom: Range | null): void {
    here.push(selectionChanges(here.query, zoom));
  }

  #timesText = $derived(this.#zoomText);
  /** The selected times of a run, in all its views. */
  times = $derived.by(() => (void this.#timesText, untrack(() => selectedTimes(here.query))));
  #stepsText = $derived(`${this.#zoomText} ${here.query.get('steps')}`);
  /** The selected steps, if the address has them exactly. */
  steps = $derived.by(() => (void this.#stepsText, untrack(() => selectedSteps(here.query))));

  /** The zoom of the charts whose x axis is this metric, while those of the page have another one. */
  metricZoom(metric: string): Range | null {
    return metricZoomOf(here.query, metric);
  }

  enlarge(chart: string | null): void {
    here.push({ open: chart });
  }

  setPalette(palette: PaletteName): void {
    this.palette = palette;
    localStorage.setItem(PALETTE_KEY, palette);
  }
}

function keptPalette(): PaletteName {
  const kept = localStorage.getItem(PALETTE_KEY);
  return PALETTES.find((name) => name === kept) ?? 'standard';
}

export const view = new ChartView();
