// One run as the page follows it: its facts, its series, the displayed time range, and the points of each chart.

import { flushSync } from 'svelte';
import { asApiError, get, type ApiError, runPath, type LoggedRow, type News, type Params, type RunDetail, type RunKey, type Sample, type SeriesInfo } from '../../../base/api';
import { inRequests, type ChartFeed } from './chartFeed';
import { forgetEarly } from '../../../base/early';
import { EventStream, type Link } from '../../../base/eventStream';
import { groupBy } from '../../../base/groups';
import { fromMetrics, seriesId, type Points, type Range } from '../../../chart/points';
import { Replay, stageEnd } from '../replay.svelte';
import { seriesOf } from './runPlan';
import { keyGlob, merged } from './seriesList';
import type { Metrics, RunPlan } from '../../../base/wire';

/** Points of a series on a chart that fills the window: more than it has pixels could not be seen. */
export const LARGE_POINTS = 1200;
/** Until a request that the server did not respond to is repeated. */
const RETRY_MS = 3000;
/** How long live samples are kept for responses that have not arrived yet. */
const RECENT_MS = 30_000;
/** Between two drawings of charts with live samples: never shorter, and longer where the time axis would move by less than two pixels. */
const DRAWN_MS = 1000;
const MAX_DRAWN_MS = 5000;
const AXIS_STEPS = 200;
/** The share of the time that drawing charts of a live run may take: the browser takes about as long again to paint them. */
const DRAWING_SHARE = 0.01;
/** Charts are drawn in one task for so long. */
const TASK_MS = 25;

export class RunData {
  run = $state.raw<RunDetail | null>(null);
  series = $state.raw<SeriesInfo[] | null>(null);
  /** Whether `series` has all that the run has; else more are loaded by `loadMore` and `search`. */
  complete = $state(true);
  error = $state<ApiError | null>(null);
  /** Why the series could not be loaded; empty if they could. */
  seriesError = $state('');
  /** It was deleted, or may no longer be seen, since it was loaded. */
  gone = $state(false);
  link = $state<Link>('connecting');
  /** The range that the user zoomed into; null follows the run. */
  zoom = $state.raw<Range | null>(null);
  /** Show only the newest samples of this duration; null shows the whole run. */
  windowMs = $state<number | null>(null);
  /** Points are for a logarithmic axis, whose zero is the start of the run. */
  #log = false;
  newestMs = $state(0);
  /** While the run is replayed. */
  replay = $state.raw<Replay | null>(null);
  /** Show the run as it was at this time; null: all of it. */
  until = $state<number | null>(null);
  /** The time range without a zoom. */
  whole = $derived.by((): Range => {
    const start = this.run?.started_ms ?? 0;
    const end = Math.max(this.until ?? Math.max(this.newestMs, this.run?.ended_ms ?? 0), start + 1000);
    return { min: this.windowMs === null ? start : Math.max(start, end - this.windowMs), max: end };
  });
  /** The displayed time range. */
  range = $derived(this.zoom ?? this.whole);

  /** The end of the part of the run whose points are loaded for a replay. */
  #stage: number | null = null;
  #live: EventStream | null = null;
  #feeds = new Set<ChartFeed>();
  #requested = new Set<ChartFeed>();
  /** Charts whose points have changed since they were drawn. */
  #undrawn = new Set<ChartFeed>();
  #drawnAt = -Infinity;
  /** How long drawing has taken since then. */
  #drawingMs = 0;
  #recent: Sample[] = [];
  #seriesIds = new Set<string>();
  #plans = 0;
  #pages = 1;
  /** How many series the pages that are loaded leave out at their beginning. */
  #next: number | null = null;
  #words = '';
  #searchedSeries: SeriesInfo[] = [];
  /** Nothing was requested yet, so that requests of the page's entry may be under way. */
  #first = true;
  #wasOpen = false;
  /** How many times the stream brought the facts of the run. */
  #told = 0;
  #listeners = new Set<(calls: LoggedRow[] | null) => void>();
  #timers = new Map<string, ReturnType<typeof setTimeout>>();
  #closed = new AbortController();

  constructor(readonly key: RunKey) {
    this.#start();
  }

  async #start(): Promise<void> {
    const [cursor] = await Promise.all([this.#loadSeries(), this.refresh()]);
    if (this.#closed.signal.aborted) return;
    if (!this.run) {
      if (this.error?.passing) this.#later('start', RETRY_MS, () => void this.#start());
      return;
    }
    if (!this.series?.length) this.#withoutEarly(); // a chart that comes later needs newer points
    // From the position of the plan: points are requested after it, so that nothing between them and the stream is missed.
    this.#live = new EventStream(
      runPath(this.key, '/live'),
      {
        event: (name, data) => {
          if (name === 'news') this.#take(JSON.parse(data) as News);
          else if (name === 'deleted') this.#leave();
        },
        link: (link) => this.#linkChanged(link),
        refused: () => void this.refresh(),
      },
      cursor,
    );
  }

  #withoutEarly(): void {
    this.#first = false;
    forgetEarly();
  }

  close(): void {
    this.#withoutEarly();
    this.replay?.pause();
    this.#closed.abort();
    this.#live?.close();
    for (const timer of this.#timers.values()) clearTimeout(timer);
  }

  /** Load the run again: it was changed, or the user is no longer authorised. */
  async refresh(): Promise<void> {
    const told = this.#told;
    await this.#try(async () => {
      const run = await get<RunDetail>(runPath(this.key), {}, this.#closed.signal);
      this.error = null;
      if (told === this.#told || this.run === null) this.run = run;
      else this.#later('refresh', RETRY_MS, () => void this.refresh()); // the stream was faster, and may know more
    });
  }

  /** Load the plan as far as it was loaded before. Resolves to its position in the run; empty if it failed. */
  async #loadSeries(): Promise<string> {
    const plan = ++this.#plans;
    try {
      const first = await this.#planPage({});
      let series = seriesOf(first);
      let { next } = first;
      for (let page = 1; page < this.#pages && next !== null; page++) {
        const more = await this.#planPage({ skip: next });
        next = more.next;
        series = merged(series, seriesOf(more));
      }
      if (plan !== this.#plans) return first.cursor; // a newer one was asked for meanwhile
      this.#next = next;
      this.complete = this.#next === null;
      this.newestMs = Math.max(this.newestMs, first.newest_ms);
      this.#setSeries(merged(series, this.complete ? [] : this.#searchedSeries));
      this.seriesError = '';
      return first.cursor;
    } catch (problem) {
      if (this.#closed.signal.aborted || plan !== this.#plans) return '';
      const { message, passing } = asApiError(problem);
      this.seriesError = message;
      if (passing) this.#later('series', RETRY_MS, () => void this.#reloadAll());
      return '';
    }
  }

  #planPage(params: Params): Promise<RunPlan> {
    return get<RunPlan>(runPath(this.key, '/plan'), params, this.#closed.signal);
  }

  #setSeries(series: SeriesInfo[]): void {
    this.#seriesIds = new Set(series.map((item) => seriesId(item)));
    this.series = series;
  }

  /** Load the next page of a list that is longer than what is loaded. */
  async loadMore(): Promise<void> {
    await this.#try(async () => {
      if (this.#next === null) return;
      const more = await this.#planPage({ skip: this.#next });
      this.#pages += 1;
      this.#next = more.next;
      this.complete = this.#next === null;
      this.#setSeries(merged(this.series ?? [], seriesOf(more)));
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
      this.#searchedSeries = seriesOf(await this.#planPage({ keys }));
      this.#setSeries(merged(this.series ?? [], this.#searchedSeries));
    });
  }

  async #try(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (this.#closed.signal.aborted) return;
      this.error = asApiError(error);
      if (this.error.status === 404 && !this.error.older && this.run) this.#leave();
    }
  }

  #leave(): void {
    this.gone = true;
    this.close();
  }

  /** Call `work` once after `ms`, however often it is requested until then. */
  #later(task: string, ms: number, work: () => void): void {
    if (this.#timers.has(task)) return;
    const timer = setTimeout(() => {
      this.#timers.delete(task);
      if (!this.#closed.signal.aborted) work();
    }, ms);
    this.#timers.set(task, timer);
  }

  #linkChanged(link: Link): void {
    this.link = link;
    if (link !== 'open') return;
    // The stream continues where it was; what failed meanwhile is requested again.
    if (this.#wasOpen) void this.#reloadAll();
    this.#wasOpen = true;
  }

  async #reloadAll(): Promise<void> {
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
    this.#request(feed);
    return () => {
      this.#feeds.delete(feed);
      this.#undrawn.delete(feed);
      this.#requested.delete(feed);
    };
  }

  /** Show a chart with more or fewer points. */
  setPoints(feed: ChartFeed, maxPoints: number): void {
    if (feed.maxPoints === maxPoints) return;
    feed.maxPoints = maxPoints;
    if (this.#feeds.has(feed)) this.#request(feed);
  }

  setZoom(zoom: Range | null): void {
    if (this.zoom?.min === zoom?.min && this.zoom?.max === zoom?.max) return;
    this.zoom = zoom;
    for (const feed of this.#feeds) {
      if (zoom === null && feed.base) this.#show(feed, feed.base, false);
      if (zoom !== null || feed.isFull || !feed.base) this.#request(feed);
    }
  }

  setWindow(windowMs: number | null): void {
    this.windowMs = windowMs;
    this.zoom = null;
    this.reload();
  }

  /** Load points for a logarithmic axis, or for another one. */
  setLog(log: boolean): void {
    if (log === this.#log) return;
    this.#log = log;
    for (const feed of this.#feeds) this.#request(feed);
  }

  /** Show the run as it was at its begin, from where it can be played. */
  openReplay(): Replay {
    const { min, max } = this.whole;
    this.replay = new Replay(this.run?.started_ms ?? min, max, (at) => this.#showUntil(at));
    this.replay.seek(this.replay.start);
    return this.replay;
  }

  endReplay(): void {
    this.replay?.pause();
    this.replay = null;
    this.#showUntil(null);
  }

  #showUntil(until: number | null): void {
    const { replay, windowMs } = this;
    const back = windowMs !== null && until !== null && until < (this.until ?? Infinity);
    const stage = until === null || !replay ? null : stageEnd(replay.start, replay.end, until);
    this.until = until;
    if (stage !== this.#stage || back) {
      this.#stage = stage;
      for (const feed of this.#feeds) this.#request(feed);
    }
    for (const feed of this.#feeds) if (feed.base && !feed.zoomed) this.#show(feed, feed.base, false);
  }

  #request(feed: ChartFeed): void {
    this.#requested.add(feed);
    this.#later('points', this.#first ? 0 : 20, () => void this.#loadRequested());
  }

  /** One request for the charts that came into view together, or several if they are many. */
  async #loadRequested(): Promise<void> {
    const feeds = [...this.#requested];
    this.#requested.clear();
    const mayBeEarly = this.#first && this.zoom === null && this.windowMs === null && !this.#log;
    this.#first = false;
    const early = groupBy(feeds, (feed) => (mayBeEarly ? feed.early : null));
    for (const [keys, feeds] of early) if (keys) void this.#load(feeds, keys);
    const others = early.get(null) ?? [];
    for (const sameWidth of groupBy(others, ({ maxPoints }) => maxPoints).values()) {
      for (const feeds of inRequests(sameWidth)) await this.#load(feeds, [...new Set(feeds.flatMap((feed) => feed.plan.patterns))]);
    }
  }

  /** Load charts of one number of points. */
  async #load(feeds: readonly ChartFeed[], keys: readonly string[]): Promise<void> {
    const zoom = this.zoom;
    const windowMs = this.windowMs;
    const stage = this.#stage;
    const log = this.#log;
    const from = zoom ? Math.floor(zoom.min) : windowMs === null ? null : Math.floor(this.range.min);
    const params = { keys: [...keys], max_points: feeds[0]!.maxPoints, t0: from, t1: zoom ? Math.ceil(zoom.max) : stage, ...(log && { log_from: this.run!.started_ms }) };
    try {
      const answer = await get<Metrics>(runPath(this.key, '/metrics'), params, this.#closed.signal);
      if (zoom !== this.zoom || windowMs !== this.windowMs || stage !== this.#stage || log !== this.#log) return; // the range was changed meanwhile
      this.#receive(answer, feeds, zoom !== null);
    } catch (error) {
      if (this.#closed.signal.aborted) return;
      const { message, passing } = asApiError(error);
      for (const feed of feeds) {
        if (feed.state !== 'ready') feed.state = 'failed';
        feed.error = message;
        if (feed.isFull) feed.forgetBase();
        if (this.#feeds.has(feed)) feed.changed();
      }
      if (passing) this.#later('again', RETRY_MS, () => this.reload());
    }
  }

  #receive(answer: Metrics, feeds: readonly ChartFeed[], zoomed: boolean): void {
    const all = fromMetrics(answer);
    for (const feed of feeds) {
      const points = new Map([...all].filter(([id]) => feed.ids.has(id)));
      feed.bucketMs = answer.bucket_ms;
      feed.error = '';
      if (!zoomed) {
        feed.setBase(points, answer.resolution === 'raw' ? -Infinity : answer.t1);
        if (this.until === null) for (const sample of this.#recent) feed.append(sample);
      }
      this.#show(feed, points, zoomed);
    }
  }

  #show(feed: ChartFeed, points: ReadonlyMap<string, Points>, zoomed: boolean): void {
    feed.show(points, zoomed, this.until);
    this.#draw([feed]);
  }

  /** Have charts drawn in tasks that are short: together they would block the page for too long. */
  #draw(feeds: Iterable<ChartFeed>): void {
    // The chart of a response that took long may be gone by now.
    for (const feed of feeds) if (this.#feeds.has(feed)) this.#undrawn.add(feed);
    if (this.#undrawn.size > 0) this.#later('draw', 0, () => this.#drawNext());
  }

  #drawNext(): void {
    const began = performance.now();
    const until = began + TASK_MS;
    for (const feed of this.#undrawn) {
      this.#undrawn.delete(feed);
      feed.changed();
      flushSync(); // drawn now, and not with all others
      if (performance.now() > until) break;
    }
    this.#drawingMs += performance.now() - began;
    this.#draw([]);
  }

  /** All charts, because the end of the time axis moves too. */
  #drawLive(): void {
    const interval = Math.min(MAX_DRAWN_MS, Math.max(DRAWN_MS, (this.range.max - this.range.min) / AXIS_STEPS, this.#drawingMs / DRAWING_SHARE));
    this.#later('live', Math.max(0, this.#drawnAt + interval - performance.now()), () => {
      this.#drawnAt = performance.now();
      this.#drawingMs = 0;
      this.newestMs = this.#newest();
      // A zoom freezes charts at once, and not when its points are there.
      if (this.zoom === null) this.#draw([...this.#feeds].filter((feed) => feed.base && !feed.zoomed));
    });
  }

  // Live news

  #newest(): number {
    return this.#recent.reduce((latest, sample) => Math.max(latest, sample.t), this.newestMs);
  }

  /** Listen for logged rows; null means that rows were skipped and have to be loaded again. */
  onRows(listener: (calls: LoggedRow[] | null) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #take(news: News): void {
    // News are the same for everyone: what this user may do is known from the response.
    if (news.run) {
      this.#told += 1;
      const { may = null, events, ranks } = this.run ?? {};
      this.run = { ...news.run, may, events: kept(events, news.run.events), ranks: kept(ranks, news.run.ranks) };
      this.#drawLive();
    }
    if (news.reload) this.#later('reload', 0, () => void this.#reloadAll());
    if (news.calls) for (const listener of this.#listeners) listener(news.calls);
    if (news.samples) this.#takeSamples(news.samples);
  }

  #takeSamples(samples: Sample[]): void {
    this.#recent.push(...samples);
    const newest = this.#newest();
    this.#recent = this.#recent.filter((sample) => sample.t > newest - RECENT_MS);
    // With an incomplete list, it is unknown which series are new.
    if (this.complete && samples.some((sample) => Object.keys(sample.values).some((key) => !this.#seriesIds.has(seriesId({ ...sample, key }))))) {
      this.#later('series', 1000, () => void this.#loadSeries());
    }
    if (this.until !== null) return; // a run that has ended is replayed, and this is the rest of it
    for (const feed of this.#feeds) {
      for (const sample of samples) feed.append(sample);
      if (feed.isFull && this.zoom) feed.forgetBase();
      else if (feed.isFull) this.#request(feed);
    }
    this.#drawLive();
  }
}

/** What is equal stays the same, so that charts are not drawn for it again. */
const kept = <T>(before: T | undefined, after: T): T => (JSON.stringify(before) === JSON.stringify(after) ? before! : after);
