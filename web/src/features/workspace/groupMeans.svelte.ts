// The means of groups of all runs that match, for the panels in view.

import { get, reasonOf, type Params } from '../../base/api';
import type { Range } from '../../chart/points';
import { meansOf, type RunGroup } from './overlay';
import { MAX_POINTS, type OverlayFeed } from './overlayData.svelte';
import type { PanelX } from './panel';
import { groupColourId } from '../runs/runColour';
import type { ChartGroup, GroupedOverlay } from '../../base/wire';

/** Values in one response: it is parsed at once, which must not take longer than a frame. */
const VALUES_PER_REQUEST = 40_000;
const MAX_KEYS = 6;
const USUAL_GROUPS = 8;
const RUNNING_REFRESH_MS = 15_000;
/** The server ended reading for lack of time, and reads on. */
const UNREAD_REFRESH_MS = 500;
const AGAIN_MS = 5000;

/** The runs that the groups are of. */
export interface GroupedRuns {
  runs: number;
  older: number;
  unread: number;
  leftOutGroups: number;
}

export class GroupMeansData {
  groups = $state.raw<readonly RunGroup[]>([]);
  /** null: not known yet. */
  about = $state.raw<GroupedRuns | null>(null);
  #params: Params | null = null;
  #by: readonly string[] = [];
  #asked = '';
  #feeds = new Set<OverlayFeed>();
  #requested = new Set<OverlayFeed>();
  #zooms: ReadonlyMap<PanelX, Range> = new Map();
  #isLoading = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #refresh: ReturnType<typeof setTimeout> | undefined;
  #closed = new AbortController();

  /** `draw` is called for a panel with new points; `claim` with the ids of the groups, before they are drawn. */
  constructor(
    private readonly draw: (feed: OverlayFeed) => void,
    private readonly claim: (ids: string[]) => void,
  ) {}

  close(): void {
    this.#closed.abort();
    clearTimeout(this.#timer);
    clearTimeout(this.#refresh);
  }

  /** Group the runs with these parameters of `/runs`; without names there are no groups. */
  set(params: Params, by: readonly string[]): void {
    const asked = JSON.stringify([params, by]);
    if (asked === this.#asked) return;
    this.#asked = asked;
    this.#params = by.length > 0 ? { ...params, by: [...by] } : null;
    this.#by = by;
    clearTimeout(this.#refresh);
    if (this.#params) this.#requestAll();
    else [this.groups, this.about] = [[], null];
  }

  /** Show a part of these axes. */
  setZooms(zooms: ReadonlyMap<PanelX, Range>): void {
    const before = this.#zooms;
    this.#zooms = zooms;
    for (const feed of this.#feeds) {
      const [was, is] = [before.get(feed.x), zooms.get(feed.x)];
      if (was?.min !== is?.min || was?.max !== is?.max) this.#request(feed);
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

  #requestAll(): void {
    for (const feed of this.#feeds) this.#request(feed);
  }

  #request(feed: OverlayFeed): void {
    this.#requested.add(feed);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#loadRequested(), 30);
  }

  async #loadRequested(): Promise<void> {
    if (this.#isLoading) return;
    this.#isLoading = true;
    while (this.#requested.size > 0 && this.#params && !this.#closed.signal.aborted) await this.#load(this.#next());
    this.#isLoading = false;
  }

  /** Some of the panels that came into view together. */
  #next(): OverlayFeed[] {
    const [first] = [...this.#requested] as [OverlayFeed];
    const most = Math.floor(VALUES_PER_REQUEST / (MAX_POINTS * 4 * Math.max(1, this.groups.length || USUAL_GROUPS)));
    const alike = [...this.#requested].filter(({ metric, x, log }) => metric.source === first.metric.source && x === first.x && log === first.log);
    const feeds = alike.slice(0, Math.max(1, Math.min(MAX_KEYS, most)));
    for (const feed of feeds) this.#requested.delete(feed);
    return feeds;
  }

  async #load(feeds: readonly OverlayFeed[]): Promise<void> {
    const [{ metric, x, log }] = feeds as [OverlayFeed];
    const [asked, zoom, by] = [this.#asked, this.#zooms.get(x) ?? null, this.#by];
    const params = { ...this.#params, keys: feeds.map((feed) => feed.metric.key), x, points: MAX_POINTS, ...(log && { scale: 'log' }), ...(zoom && { x0: zoom.min, x1: zoom.max }) };
    try {
      const answer = await get<GroupedOverlay>(`overlay/groups/${metric.source}`, params, this.#closed.signal);
      if (asked !== this.#asked || zoom !== (this.#zooms.get(x) ?? null)) {
        for (const feed of feeds) if (this.#feeds.has(feed)) this.#requested.add(feed);
        return;
      }
      const groups = answer.groups.map((group) => groupOf(group, by));
      this.claim(groups.map(({ id }) => id));
      if (JSON.stringify(groups) !== JSON.stringify(this.groups)) this.groups = groups;
      this.about = { runs: answer.runs, older: answer.older_runs, unread: answer.unread_runs, leftOutGroups: answer.left_out_groups };
      for (const feed of feeds) {
        const answered = answer.keys.find(({ key }) => key === feed.metric.key);
        if (!answered) continue;
        const [points, width] = [meansOf(answered, groups), log ? null : answered.width];
        if (!zoom) [feed.base, feed.baseWidth] = [points, width];
        [feed.points, feed.width, feed.state, feed.error] = [points, width, 'ready', ''];
        if (this.#feeds.has(feed)) this.draw(feed);
      }
      if (answer.unread_runs > 0) this.#later(UNREAD_REFRESH_MS);
      else if (answer.running > 0) this.#later(RUNNING_REFRESH_MS);
    } catch (problem) {
      if (this.#closed.signal.aborted) return;
      for (const feed of feeds) {
        if (feed.state !== 'ready') feed.state = 'failed';
        feed.error = reasonOf(problem);
        if (this.#feeds.has(feed)) this.draw(feed);
      }
      this.#later(AGAIN_MS);
    }
  }

  #later(ms: number): void {
    clearTimeout(this.#refresh);
    this.#refresh = setTimeout(() => (document.hidden ? this.#later(ms) : this.#requestAll()), ms);
  }
}

const NOTHING = '–';

/** A group with its name: what its runs have in common. */
function groupOf({ values, runs }: ChartGroup, by: readonly string[]): RunGroup {
  const texts = by.map((name) => valueText(values[name] ?? null));
  const label = by.map((name, i) => `${short(name)}: ${texts[i]}`).join(', ');
  return { id: groupColourId(by.map((name) => values[name] ?? null)), label, runs };
}

function valueText(value: string | number | null): string {
  if (value === null) return NOTHING;
  return typeof value === 'number' ? String(Number(value.toPrecision(6))) : value;
}

const short = (name: string): string => name.replace(/^(config|summary)\./, '');
