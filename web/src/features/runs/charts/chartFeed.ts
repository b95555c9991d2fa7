// The points of one chart of a run: of the whole range (`base`), and of a zoom into it.

import type { Sample } from '../../../base/api';
import type { ChartPlan } from './chartPlan';
import { CARD_POINTS, EARLY_REQUESTS } from '../../../base/early';
import { append, seriesId, upTo, type Points } from '../../../chart/points';

/** Live samples that may be appended to a response before it is requested again. */
export const MAX_APPENDED = 200;

/** Charts in one request: its address has a limit. */
const CHARTS_PER_REQUEST = 20;
/** Points of all series in one response: it is parsed at once, and each is a mean, a minimum and a maximum. */
const POINTS_PER_REQUEST = 30_000;

/** Charts with the same number of points in requests that are not too large; a chart with very many series has one of its own. */
export function inRequests(feeds: readonly ChartFeed[]): ChartFeed[][] {
  const batches: ChartFeed[][] = [];
  let points = Infinity;
  for (const feed of feeds) {
    const own = feed.plan.series.length * feed.maxPoints;
    const last = batches[batches.length - 1];
    if (!last || last.length >= CHARTS_PER_REQUEST || points + own > POINTS_PER_REQUEST) {
      batches.push([feed]);
      points = own;
    } else {
      last.push(feed);
      points += own;
    }
  }
  return batches;
}

export class ChartFeed {
  points: ReadonlyMap<string, Points> = new Map();
  state: 'waiting' | 'ready' | 'failed' = 'waiting';
  error = '';
  /** Width of the buckets that the points stand for; null if they are samples. */
  bucketMs: number | null = null;
  zoomed = false;
  /** Points of a series to request. */
  maxPoints = CARD_POINTS;
  base: ReadonlyMap<string, Points> | null = null;
  readonly ids: ReadonlySet<string>;
  #appended = 0;
  /** The end of what `base` was computed from. */
  #upto = -Infinity;

  constructor(
    readonly plan: ChartPlan,
    readonly changed: () => void,
  ) {
    this.ids = new Set(plan.series.map((series) => seriesId(series)));
  }

  /** The request that the page's entry began and that has its points; null if none has. */
  get early(): readonly string[] | null {
    if (this.maxPoints !== CARD_POINTS) return null;
    return EARLY_REQUESTS.find((keys) => this.plan.patterns.every((pattern) => keys.includes(pattern))) ?? null;
  }

  /** So many live samples were appended that the points have to be requested again, in wider buckets. */
  get isFull(): boolean {
    return this.#appended > MAX_APPENDED;
  }

  /** Take the points of a response about the whole range. `upto`: what is older is in them. */
  setBase(points: ReadonlyMap<string, Points>, upto: number): void {
    this.base = points;
    this.#appended = 0;
    this.#upto = upto;
  }

  /** Give up the points of the whole range: they are requested when they are shown again. */
  forgetBase(): void {
    this.base = null;
    this.#appended = 0;
  }

  append(sample: Sample): void {
    if (!this.base || sample.t <= this.#upto) return;
    let moved = false;
    for (const series of this.plan.series) {
      if (series.host !== sample.host || series.role !== sample.role || !Object.hasOwn(sample.values, series.key)) continue;
      const points = this.base.get(seriesId(series));
      if (points) moved = append(points, sample.t, sample.values[series.key] ?? null) || moved;
    }
    if (moved) this.#appended += 1;
  }

  /** Show the points of a zoom, or of the whole range up to a time. */
  show(points: ReadonlyMap<string, Points>, zoomed: boolean, until: number | null): void {
    this.points = zoomed || until === null ? points : new Map([...points].map(([id, line]) => [id, upTo(line, until)]));
    this.zoomed = zoomed;
    this.state = 'ready';
  }
}
