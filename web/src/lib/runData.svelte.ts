// One run as the page follows it: its facts, its series, the displayed time range, and the points of each chart.

import { asApiError, get, type ApiError, runPath, type LoggedRow, type Metrics, type News, type Params, type RunDetail, type RunKey, type Sample, type SeriesInfo } from './api';
import type { ChartPlan } from './chartPlan';
import { EventStream, type Link } from './eventStream';
import { append, fromMetrics, seriesId, type Points } from './points';
import { keyGlob, merged, SERIES_PAGE } from './seriesList';

export interface Range {
  min: number;
  max: number;
}

/** Points of a series in one response: more than a chart has pixels could not be seen. */
export const MAX_POINTS = 600;
/** Live samples that may be appended to a response before it is requested again. */
const MAX_APPENDED = 200;
/** Charts in one request: its address has a limit. */
const CHARTS_PER_REQUEST = 20;
/** How long live samples are kept for responses that have not arrived yet. */
const RECENT_MS = 30_000;

/** The points of one chart: of the whole range (`base`), and of a zoom into it. */
export class ChartFeed {
  points: ReadonlyMap<string, Points> = new Map();
  state: 'waiting' | 'ready' | 'failed' = 'waiting';
  error = '';
  /** Width of the buckets that the points stand for; null if they are samples. */
  bucketMs: number | null = null;
  zoomed = false;
  appended = 0;
  base: Map<string, Points> | null = null;
  readonly ids: ReadonlySet<string>;

  constructor(
    readonly plan: ChartPlan,
    readonly changed: () => void,
  ) {
    this.ids = new Set(plan.series.map((one) => seriesId(one)));
  }
}

export class RunData {
  run = $state.raw<RunDetail | null>(null);
  series = $state.raw<SeriesInfo[] | null>(null);
  /** Whether `series` has all that the run has; else more are loaded by `loadMore` and `search`. */
  complete = $state(true);
  error = $state<ApiError | null>(null);
  link = $state<Link>('connecting');
  /** The range that the user zoomed into; null follows the run. */
  zoom = $state.raw<Range | null>(null);
  /** Show only the newest samples of this duration; null shows the whole run. */
  windowMs = $state<number | null>(null);
  newestMs = $state(0);
  /** The time range without a zoom. */
  whole = $derived.by((): Range => {
    const start = this.run?.started_ms ?? 0;
    const end = Math.max(this.newestMs, this.run?.ended_ms ?? 0, start + 1000);
    return { min: this.windowMs === null ? start : Math.max(start, end - this.windowMs), max: end };
  });
  /** The displayed time range. */
  range = $derived(this.zoom ?? this.whole);

  #live: EventStream | null = null;
  #feeds = new Set<ChartFeed>();
  #requested = new Set<ChartFeed>();
  #recent: Sample[] = [];
  #known = new Set<string>();
  #pages = 1;
  #words = '';
  #found: SeriesInfo[] = [];
  #listeners = new Set<(calls: LoggedRow[] | null) => void>();
  #timers = new Map<string, ReturnType<typeof setTimeout>>();
  #closed = new AbortController();

  constructor(readonly key: RunKey) {
    this.#start();
  }

  async #start(): Promise<void> {
    await this.refresh();
    if (this.#closed.signal.aborted || this.error) return;
    // The stream first: the responses that are requested once it is open contain everything before it, so nothing is missed.
    this.#live = new EventStream(runPath(this.key, '/live'), {
      event: (name, data) => name === 'news' && this.#take(JSON.parse(data) as News),
      link: (link) => this.#linkChanged(link),
      refused: () => void this.refresh(),
    });
    this.#later('first', 700, () => void this.#reloadAll());
  }

  close(): void {
    this.#closed.abort();
    this.#live?.close();
    for (const timer of this.#timers.values()) clearTimeout(timer);
  }

  /** Load the run again: it was changed, or the user is no longer authorised. */
  async refresh(): Promise<void> {
    await this.#try(async () => {
      this.run = await get<RunDetail>(runPath(this.key), {}, this.#closed.signal);
    });
  }

  async #loadSeries(): Promise<void> {
    await this.#try(async () => {
      let series: SeriesInfo[] = [];
      let complete = false;
      for (let page = 0; page < this.#pages && !complete; page++) {
        const more = await this.#seriesPage({ skip: page * SERIES_PAGE });
        complete = more.length < SERIES_PAGE;
        series = page === 0 ? more : merged(series, more);
      }
      this.complete = complete;
      this.#setSeries(merged(series, complete ? [] : this.#found));
    });
  }

  #seriesPage(params: Params): Promise<SeriesInfo[]> {
    return get<SeriesInfo[]>(runPath(this.key, '/series'), params, this.#closed.signal);
  }

  #setSeries(series: SeriesInfo[]): void {
    this.#known = new Set(series.map((one) => seriesId(one)));
    this.newestMs = series.reduce((newest, one) => Math.max(newest, one.last_ms), this.newestMs);
    this.series = series;
  }

  /** Load the next page of a list that is longer than what is loaded. */
  async loadMore(): Promise<void> {
    await this.#try(async () => {
      const more = await this.#seriesPage({ skip: this.#pages * SERIES_PAGE });
      this.#pages += 1;
      this.complete = more.length < SERIES_PAGE;
      this.#setSeries(merged(this.series ?? [], more));
    });
  }

  /** Have the server search for keys with these words if not all series are loaded. */
  search(words: string): void {
    this.#words = words;
    if (!this.complete && words.trim()) this.#later('search', 300, () => void this.#search());
  }

  async #search(): Promise<void> {
    const keys = keyGlob(this.#words);
    if (keys === null || this.complete) return;
    await this.#try(async () => {
      this.#found = await this.#seriesPage({ keys });
      this.#setSeries(merged(this.series ?? [], this.#found));
    });
  }

  async #try(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (this.#closed.signal.aborted) return;
      this.error = asApiError(error);
    }
  }

  /** Call `work` once after `ms`, however often it is requested until then. */
  #later(what: string, ms: number, work: () => void): void {
    if (this.#timers.has(what)) return;
    const timer = setTimeout(() => {
      this.#timers.delete(what);
      if (!this.#closed.signal.aborted) work();
    }, ms);
    this.#timers.set(what, timer);
  }

  #linkChanged(link: Link): void {
    this.link = link;
    if (link === 'open') void this.#reloadAll();
  }

  async #reloadAll(): Promise<void> {
    clearTimeout(this.#timers.get('first'));
    this.#timers.delete('first');
    await this.#loadSeries();
    this.reload();
  }

  /** Request everything in view again. */
  reload(): void {
    for (const feed of this.#feeds) this.#request(feed);
    for (const listener of this.#listeners) listener(null);
  }

  // Charts in view

  add(feed: ChartFeed): () => void {
    this.#feeds.add(feed);
    if (this.#live && !this.#timers.has('first')) this.#request(feed);
    return () => {
      this.#feeds.delete(feed);
      this.#requested.delete(feed);
    };
  }

  setZoom(zoom: Range | null): void {
    if (this.zoom?.min === zoom?.min && this.zoom?.max === zoom?.max) return;
    this.zoom = zoom;
    for (const feed of this.#feeds) {
      if (zoom === null && feed.base) this.#show(feed, feed.base, false);
      if (zoom !== null || feed.appended > MAX_APPENDED || !feed.base) this.#request(feed);
    }
  }

  setWindow(windowMs: number | null): void {
    this.windowMs = windowMs;
    this.zoom = null;
    this.reload();
  }

  #request(feed: ChartFeed): void {
    this.#requested.add(feed);
    this.#later('points', 20, () => void this.#loadRequested());
  }

  /** One request for the charts that came into view together, or several if they are many. */
  async #loadRequested(): Promise<void> {
    const feeds = [...this.#requested];
    this.#requested.clear();
    for (let i = 0; i < feeds.length; i += CHARTS_PER_REQUEST) await this.#load(feeds.slice(i, i + CHARTS_PER_REQUEST));
  }

  async #load(feeds: readonly ChartFeed[]): Promise<void> {
    const zoom = this.zoom;
    const windowMs = this.windowMs;
    const from = zoom ? Math.floor(zoom.min) : windowMs === null ? null : Math.floor(this.range.min);
    const keys = [...new Set(feeds.flatMap((feed) => feed.plan.patterns))];
    const params = { keys, max_points: MAX_POINTS, t0: from, t1: zoom ? Math.ceil(zoom.max) : null };
    try {
      const answer = await get<Metrics>(runPath(this.key, '/metrics'), params, this.#closed.signal);
      if (zoom !== this.zoom || windowMs !== this.windowMs) return; // the user changed the range meanwhile
      this.#receive(answer, feeds, zoom !== null);
    } catch (error) {
      if (this.#closed.signal.aborted) return;
      const { message, status } = asApiError(error);
      for (const feed of feeds) {
        if (feed.state !== 'ready') feed.state = 'failed';
        feed.error = message;
        feed.changed();
      }
      if (status === 0) this.#later('again', 3000, () => this.reload());
    }
  }

  #receive(answer: Metrics, feeds: readonly ChartFeed[], zoomed: boolean): void {
    const all = fromMetrics(answer);
    for (const feed of feeds) {
      const points = new Map([...all].filter(([id]) => feed.ids.has(id)));
      feed.bucketMs = answer.bucket_ms;
      feed.error = '';
      if (!zoomed) {
        feed.base = points;
        feed.appended = 0;
        for (const sample of this.#recent) if (sample.t > answer.t1) this.#append(feed, sample);
      }
      this.#show(feed, points, zoomed);
    }
  }

  #show(feed: ChartFeed, points: ReadonlyMap<string, Points>, zoomed: boolean): void {
    feed.points = points;
    feed.zoomed = zoomed;
    feed.state = 'ready';
    feed.changed();
  }

  // Live news

  /** Listen for logged rows; null means that rows were skipped and have to be loaded again. */
  onRows(listener: (calls: LoggedRow[] | null) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #take(news: News): void {
    // News are the same for everyone: what this user may do is known from the response.
    if (news.run) this.run = { ...news.run, may: this.run?.may ?? null };
    if (news.reload) this.#later('reload', 0, () => void this.#reloadAll());
    if (news.calls) for (const listener of this.#listeners) listener(news.calls);
    if (news.samples) this.#takeSamples(news.samples);
  }

  #takeSamples(samples: Sample[]): void {
    const newest = samples.reduce((latest, sample) => Math.max(latest, sample.t), this.newestMs);
    this.#recent = [...this.#recent, ...samples].filter((sample) => sample.t > newest - RECENT_MS);
    // With an incomplete list, it is unknown which series are new.
    if (this.complete && samples.some((sample) => Object.keys(sample.values).some((key) => !this.#known.has(seriesId({ ...sample, key }))))) {
      this.#later('series', 1000, () => void this.#loadSeries());
    }
    for (const feed of this.#feeds) {
      let moved = false;
      for (const sample of samples) moved = this.#append(feed, sample) || moved;
      if (moved && !feed.zoomed) feed.changed();
      if (feed.appended > MAX_APPENDED && !this.zoom) this.#request(feed);
    }
    this.newestMs = newest;
  }

  #append(feed: ChartFeed, sample: Sample): boolean {
    if (!feed.base) return false;
    let moved = false;
    for (const one of feed.plan.series) {
      if (one.host !== sample.host || one.role !== sample.role || !Object.hasOwn(sample.values, one.key)) continue;
      const points = feed.base.get(seriesId(one));
      if (points) moved = append(points, sample.t, sample.values[one.key] ?? null) || moved;
    }
    if (moved) feed.appended += 1;
    return moved;
  }
}
