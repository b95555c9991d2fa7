// The hosts of a run in time: when each reported, where it did not, and when its processes ended.

import type { RunDetail } from '../../base/api';
import { groupBy } from '../../base/groups';
import { pinsOf, why } from './runText';
import type { Rank } from '../../base/wire';

/** A part of the time axis, in percent of it. */
export interface Part {
  left: number;
  width: number;
  text: string;
}

export interface Mark {
  left: number;
  level: string;
  text: string;
}

export interface HostSpan {
  name: string;
  state: string;
  /** When samples came. */
  bar: Part;
  /** When none came, because its monitor was restarted. */
  gaps: Part[];
  /** Processes that ended otherwise than normally, together where they ended in the same second. */
  ends: Mark[];
}

export interface RunSpans {
  start: number;
  end: number;
  hosts: HostSpan[];
  /** Hosts that are left out. */
  more: number;
  /** Alerts, and what went wrong. */
  events: Mark[];
}

const namesOf = (ranks: readonly Rank[]): string => {
  if (ranks.length > 1) return `${ranks.length} processes`;
  const [{ rank, pid }] = ranks as [Rank];
  return rank === null ? `process ${pid}` : `rank ${rank}`;
};

const MAX_HOSTS = 32;
/** Narrower than this, a part could not be seen. */
const MIN_PERCENT = 0.4;

export function runSpans(run: Pick<RunDetail, 'started_ms' | 'ended_ms' | 'hosts' | 'ranks' | 'events'>, now: number): RunSpans {
  const start = Math.min(run.started_ms, ...run.hosts.map((host) => host.started_ms));
  const last = Math.max(start, ...run.hosts.map((host) => host.last_ms));
  const end = Math.max(run.ended_ms ?? Math.max(last, Math.min(now, last + 60_000)), start + 1000);
  const percentAt = (ms: number): number => Math.max(0, Math.min(100, ((ms - start) / (end - start)) * 100));
  const part = (from: number, to: number, text: string): Part => {
    const width = Math.max(MIN_PERCENT, percentAt(to) - percentAt(from));
    return { left: Math.min(percentAt(from), 100 - width), width, text };
  };
  const hosts = run.hosts.slice(0, MAX_HOSTS).map((host): HostSpan => {
    const gaps = run.events.filter(({ name, host: on, data }) => name === 'gap' && on === host.name && typeof data.since === 'number');
    const ends = run.ranks.filter((rank) => rank.host === host.name && rank.ended_ms !== null && why({ ...rank, state: 'crashed' }) !== '');
    return {
      name: host.name,
      state: host.state,
      bar: part(host.started_ms, host.last_ms, `${host.name}: ${host.state}`),
      gaps: gaps.map(({ data, time_ms, text }) => part(Number(data.since), time_ms, text)),
      ends: [...groupBy(ends, ({ ended_ms }) => Math.floor(ended_ms! / 1000)).values()].map((ranks) => {
        const reasons = new Set(ranks.map((rank) => why({ ...rank, state: 'crashed' })));
        return { left: percentAt(ranks[0]!.ended_ms!), level: 'error', text: `${namesOf(ranks)}: ${[...reasons].join('; ')}` };
      }),
    };
  });
  const events = pinsOf(run.events.filter(({ name }) => name !== 'gap'));
  return {
    start,
    end,
    hosts,
    more: run.hosts.length - hosts.length,
    events: events.map(({ x, level, text }) => ({ left: percentAt(x), level, text })),
  };
}
