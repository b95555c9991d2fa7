// The runs that a workspace shows: which metrics they have, and the points of the panels in view, up to date.

import { get, reasonOf, type Params } from '../../base/api';
import { EventStream, type Link } from '../../base/eventStream';
import { MAX_BANDS } from '../../chart/drawn';
import type { Range } from '../../chart/points';
import type { PanelMetric, PanelX } from './panel';
import { pointsOf, withTail, type RunPoints } from './overlay';
import type { Overlay, OverlayMetric, OverlayPlan, OverlayRun } from '../../base/wire';

/** Points of a line: a panel is about this wide. */
export const MAX_POINTS = 300;
/** A line that grew to so many points is requested again, in wider buckets. */
const MAX_FETCHED_POINTS = 2 * MAX_POINTS;
/** Values in one response: it is parsed at once, which must not take longer than a frame. */
const VALUES_PER_REQUEST = 60_000;
/** Of a point with its extremes. */
const VALUES_OF_BAND = 4;
const MAX_KEYS = 12;
const MIN_REFRESH_MS = 2000;
/** Requests for news take at most this share of the time. */
const BUSY_SHARE = 1 / 10;
const PLAN_REFRESH_MS = 15_000;

/** The points of one metric. */
export class OverlayFeed {
  points: RunPoints = new Map();
  state: 'waiting' | 'ready' | 'failed' = 'waiting';
  error = '';
  width: number | null = null;
  /** Of the whole range; `points` are those of a zoom while there is one. */
  base: RunPoints | null = null;
  baseWidth: number | null = null;
  /** The runs whose points it has. */
  runs: ReadonlySet<string> = new Set();
  /** The runs that have changed since. */
  readonly stale = new Set<string>();

  constructor(
    readonly metric: PanelMetric,
    readonly x: PanelX,
    readonly changed: () => void,
    /** Over a logarithmic x axis. */
    readonly log = false,
  ) {}
}

interface Batch {
  feeds: readonly OverlayFeed[];
  runs: readonly string[];
  zoom: Range | null;
  /** Only what is new: from x on, in buckets of this width. */
  tail: { width: number; from: number } | null;
}

export class OverlayData {
  /** Those that may be read, in the requested order. */
  runs = $state.raw<readonly OverlayRun[]>([]);
  /** The same by id, with the newest times; reading it does not depend on them. */
  known: ReadonlyMap<string, OverlayRun> = new Map();
  missing = $state.raw<readonly string[]>([]);
  /** null until the first response. */
  logged = $state.raw<readonly string[] | null>(null);
  system = $state.raw<readonly OverlayMetric[]>([]);
  error = $state('');
  link = $state<Link>('connecting');
  running = $derived(this.runs.some(({ state }) => state === 'running'));

  #ids: readonly string[] = [];
  #stream: EventStream | null = null;
  #feeds = new Set<OverlayFeed>();
  #requested = new Set<OverlayFeed>();
  #zooms: ReadonlyMap<PanelX, Range> = new Map();
  #isLoading = false;
  #busyMs = 0;
  #planned = 0;
  #plans = 0;
  #timers = new Map<string, ReturnType<typeof setTimeout>>();
  #drawings: (() => void)[] = [];
  #closed = new AbortController();

  /** `followed`: by a stream of its own. Otherwise `changed` has to be called: a browser has few connections to a server. */
  constructor(
    readonly scope: { project: string | null; entity: string | null },
    private readonly followed = true,
  ) {}

  close(): void {
    this.#closed.abort();
    this.#stream?.close();
    for (const timer of this.#timers.values()) clearTimeout(timer);
  }

  /** Show these runs. */
  setRuns(ids: readonly string[]): void {
    if (ids.join() === this.#ids.join()) return;
    const added = ids.some((id) => !this.#ids.includes(id));
    this.#ids = ids;
    if (ids.length === 0) {
      this.#stream?.close();
      this.#stream = null;
      [this.runs, this.missing, this.logged, this.system] = [[], [], [], []];
      return;
    }
    this.runs = this.runs.filter(({ id }) => ids.includes(id));
    this.#again('plan', 0, () => void this.#loadPlan());
    this.#again('stream', 300, () => this.#follow());
    // Hidden runs stay in the points: only what is drawn changes.
    if (added) for (const feed of this.#feeds) this.#request(feed);
  }

  /** Show a part of these axes; charts of the others show everything. */
  setZooms(zooms: ReadonlyMap<PanelX, Range>): void {
    const before = this.#zooms;
    this.#zooms = zooms;
    for (const feed of this.#feeds) {
      const [was, is] = [before.get(feed.x), zooms.get(feed.x)];
      if (was?.min === is?.min && was?.max === is?.max) continue;
      if (!is && feed.base) this.#show(feed, feed.base, feed.baseWidth);
      if (is || !feed.base || feed.stale.size > 0) this.#request(feed);
    }
  }

  /** Keep the points of a metric up to date while a panel of it is in view. */
  add(feed: OverlayFeed): () => void {
    this.#feeds.add(feed);
    this.#request(feed);
    return () => {
      this.#feeds.delete(feed);
      this.#requested.delete(feed);
    };
  }

  /** Request everything in view again. */
  reload(): void {
    for (const feed of this.#feeds) {
      feed.runs = new Set();
      this.#request(feed);
    }
    void this.#loadPlan();
  }

  async #loadPlan(): Promise<void> {
    const [ids, number] = [this.#ids, ++this.#plans];
    if (ids.length === 0) return;
    this.#planned = Date.now();
    try {
      const plan = await get<OverlayPlan>('overlay/plan', { ...this.scope, runs: [...ids] }, this.#closed.signal);
      if (ids !== this.#ids || number !== this.#plans) return; // a newer one was asked for meanwhile
      this.known = new Map(plan.runs.map((run) => [run.id, run]));
      // The end of a running run changes all the time: nothing is drawn again because of that.
      if (!same(this.runs.map(lasting), plan.runs.map(lasting))) this.runs = plan.runs;
      const [arrived, stillMissing] = [this.missing.filter((id) => this.known.has(id)), same(this.missing, plan.missing)];
      this.missing = plan.missing;
      if (!same(this.logged, plan.logged)) this.logged = plan.logged;
      if (!same(this.system, plan.system)) this.system = plan.system;
      this.error = '';
      // It may only not have arrived yet, and of a run that has ended nothing says that it came.
      if (plan.missing.length > 0) this.#planLater(stillMissing ? PLAN_REFRESH_MS : MIN_REFRESH_MS);
      if (arrived.length > 0) this.changed(arrived);
    } catch (problem) {
      if (this.#closed.signal.aborted || number !== this.#plans) return;
      this.error = reasonOf(problem);
      this.#later('plan again', 5000, () => void this.#loadPlan());
    }
  }

  // Live

  #follow(): void {
    if (!this.followed) return;
    this.#stream?.close();
    const query = new URLSearchParams([...Object.entries(this.scope).filter(([, value]) => value !== null), ...this.#ids.map((id) => ['runs', id])] as string[][]);
    this.#stream = new EventStream(`overlay/live?${query}`, {
      event: (name, data) => name === 'changed' && this.changed((JSON.parse(data) as { runs: string[] }).runs),
      link: (link) => {
        this.link = link;
        // What came while there was no connection, and before the first.
        if (link === 'open') this.changed(this.#ids.filter((id) => (this.known.get(id)?.state ?? 'running') === 'running'));
      },
      refused: () => void this.#loadPlan(),
    });
  }

  /** These runs have newer values. */
  changed(ids: readonly string[]): void {
    if (this.#ids.length === 0) return;
    for (const feed of this.#feeds) for (const id of ids) feed.stale.add(id);
    this.#refreshLater();
    if (ids.some((id) => !this.known.has(id))) this.#later('new runs', MIN_REFRESH_MS, () => void this.#loadPlan());
    else if (ids.length > 0) this.#planLater(Math.max(0, this.#planned + PLAN_REFRESH_MS - Date.now()));
  }

  #planLater(ms: number): void {
    this.#later('plan', ms, () => (document.hidden ? this.#planLater(PLAN_REFRESH_MS) : void this.#loadPlan()));
  }

  #refreshLater(): void {
    this.#later('refresh', Math.max(MIN_REFRESH_MS, this.#busyMs / BUSY_SHARE), () => this.#refresh());
  }

  #refresh(): void {
    for (const feed of this.#outdated()) this.#requested.add(feed);
    void this.#loadRequested();
  }

  /** Those that have points of the whole range, and runs with newer values. */
  #outdated(): OverlayFeed[] {
    return [...this.#feeds].filter((feed) => feed.base && !this.#zooms.has(feed.x) && this.#ids.some((id) => feed.stale.has(id)));
  }

  // Requests

  #request(feed: OverlayFeed): void {
    this.#requested.add(feed);
    this.#later('points', 30, () => void this.#loadRequested());
  }

  /** One request after the other: what is requested meanwhile is in the next ones. */
  async #loadRequested(): Promise<void> {
    if (this.#isLoading) return;
    this.#isLoading = true;
    const began = performance.now();
    for (let batch = this.#nextBatch(); batch; batch = this.#nextBatch()) await this.#load(batch);
    this.#isLoading = false;
    this.#busyMs = performance.now() - began;
    // News that came while the first points were loading. What failed is requested again by itself.
    if (this.#outdated().some(({ error }) => error === '')) this.#refreshLater();
  }

  /** One request for some of the panels that came into view together. */
  #nextBatch(): Batch | null {
    const ids = this.#ids;
    const kindOf = (feed: OverlayFeed): string => [feed.metric.source, feed.x, feed.log, this.#tailWidth(feed) ?? ''].join('\n');
    while (this.#requested.size > 0 && ids.length > 0) {
      const [first] = [...this.#requested] as [OverlayFeed];
      const kind = kindOf(first);
      const values = ids.length * MAX_POINTS * (ids.length <= MAX_BANDS ? VALUES_OF_BAND : 1);
      const most = Math.max(1, Math.min(MAX_KEYS, Math.floor(VALUES_PER_REQUEST / values)));
      const feeds = [...this.#requested].filter((feed) => kindOf(feed) === kind).slice(0, most);
      for (const feed of feeds) this.#requested.delete(feed);
      const width = this.#tailWidth(first);
      const runs = width === null ? ids : ids.filter((id) => feeds.some((feed) => feed.stale.has(id)));
      if (runs.length > 0) return { feeds, runs, zoom: this.#zooms.get(first.x) ?? null, tail: width === null ? null : { width, from: tailStart(feeds, runs) } };
    }
    this.#requested.clear();
    return null;
  }

  /** The width of the buckets to request what is new in; null: everything has to be requested. */
  #tailWidth(feed: OverlayFeed): number | null {
    if (feed.log || this.#zooms.has(feed.x) || !feed.base || feed.baseWidth === null || feed.x.startsWith('metric:')) return null;
    if (this.#ids.some((id) => !feed.runs.has(id))) return null;
    const longest = Math.max(0, ...[...feed.base.values()].map(({ x }) => x.length));
    return longest > MAX_FETCHED_POINTS ? null : feed.baseWidth;
  }

  async #load({ feeds, runs, zoom, tail }: Batch): Promise<void> {
    const [{ metric, x, log }] = feeds as [OverlayFeed];
    // A zoom leaves the whole range as it was.
    if (!zoom) for (const feed of feeds) for (const id of runs) feed.stale.delete(id);
    const params: Params = {
      ...this.scope,
      runs: [...runs],
      keys: feeds.map((feed) => feed.metric.key),
      x,
      points: MAX_POINTS,
      ...(log && { scale: 'log' }),
      extremes: String(runs.length <= MAX_BANDS),
      ...(zoom && { x0: zoom.min, x1: zoom.max }),
      ...(tail && { x0: Number.isFinite(tail.from) ? tail.from : null, width: tail.width }),
    };
    try {
      const answer = await get<Overlay>(`overlay/${metric.source}`, params, this.#closed.signal);
      if ((this.#zooms.get(x) ?? null) !== zoom) {
        // The user changed the range meanwhile: what is new of the whole one is requested when that is shown again.
        if (!zoom) for (const feed of feeds) for (const id of runs) feed.stale.add(id);
        return;
      }
      for (const feed of feeds) this.#take(feed, answer, runs, zoom !== null, tail !== null);
    } catch (problem) {
      if (this.#closed.signal.aborted) return;
      for (const feed of feeds) {
        for (const id of runs) feed.stale.add(id);
        if (feed.state !== 'ready') feed.state = 'failed';
        feed.error = reasonOf(problem);
        this.#changed(feed);
      }
      this.#later('again', 5000, () => feeds.forEach((feed) => this.#feeds.has(feed) && this.#request(feed)));
    }
  }

  #take(feed: OverlayFeed, { keys }: Overlay, runs: readonly string[], zoomed: boolean, isTail: boolean): void {
    const answered = keys.find(({ key }) => key === feed.metric.key);
    if (!answered) return;
    let points = pointsOf(answered);
    if (isTail) {
      const joined = new Map(feed.base);
      for (const [run, newer] of points) {
        const before = joined.get(run);
        joined.set(run, before ? withTail(before, newer) : newer);
      }
      points = joined;
    } else {
      feed.runs = new Set(runs);
    }
    feed.error = '';
    // Of a logarithmic axis, it is no length along it.
    const width = feed.log ? null : answered.width;
    if (!zoomed) [feed.base, feed.baseWidth] = [points, width];
    this.#show(feed, points, width);
  }

  #show(feed: OverlayFeed, points: RunPoints, width: number | null): void {
    feed.points = points;
    feed.width = width;
    feed.state = 'ready';
    this.#changed(feed);
  }

  #changed(feed: OverlayFeed): void {
    if (this.#feeds.has(feed)) this.drawLater(feed.changed);
  }

  /** Charts are drawn one after the other, so that the page answers in between. */
  drawLater(draw: () => void): void {
    if (!this.#drawings.includes(draw)) this.#drawings.push(draw);
    this.#later('draw', 0, () => this.#drawNext());
  }

  #drawNext(): void {
    this.#drawings.shift()?.();
    if (this.#drawings.length > 0) this.#later('draw', 8, () => this.#drawNext());
  }

  /** Call `work` once after `ms`, however often it is requested until then. */
  #later(task: string, ms: number, work: () => void): void {
    if (this.#timers.has(task) || this.#closed.signal.aborted) return;
    const timer = setTimeout(() => {
      this.#timers.delete(task);
      work();
    }, ms);
    this.#timers.set(task, timer);
  }

  /** The same, counted from the last time it was requested. */
  #again(task: string, ms: number, work: () => void): void {
    clearTimeout(this.#timers.get(task));
    this.#timers.delete(task);
    this.#later(task, ms, work);
  }
}

/** Where the last known bucket of the run that is furthest behind begins; -Infinity if one has no points. */
function tailStart(feeds: readonly OverlayFeed[], runs: readonly string[]): number {
  const ends = feeds.flatMap((feed) => runs.map((run) => feed.base?.get(run)?.x.at(-1) ?? -Infinity));
  return Math.min(...ends);
}

const lasting = ({ id, name, state }: OverlayRun): string[] => [id, name, state];
const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);
