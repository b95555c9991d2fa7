import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { OverlayRun } from '../../base/wire';
import { OverlayData, OverlayFeed } from './overlayData.svelte';

const run = (id: string, state: OverlayRun['state'] = 'finished'): OverlayRun => ({ id, name: id, state, started_ms: 0, end_ms: 1 });

/** A server that answers the requests of plans when the test says so, and those of points at once. */
class Server {
  plans: ((runs: OverlayRun[], missing?: string[]) => Promise<void>)[] = [];
  points: URL[] = [];

  fetch = (path: string): Promise<Response> => {
    const url = new URL(path, 'http://here');
    if (!url.pathname.endsWith('/plan')) {
      this.points.push(url);
      const lines = url.searchParams.getAll('runs').map((id) => ({ run: id, y: [1], min: null, max: null, n: [1] }));
      return Promise.resolve(Response.json({ keys: url.searchParams.getAll('keys').map((key) => ({ key, width: 1, groups: [{ x: [0], lines }] })) }));
    }
    return new Promise((resolve) => {
      this.plans.push(async (runs, missing = []) => {
        resolve(Response.json({ runs, missing, logged: ['loss'], system: [] }));
        await vi.advanceTimersByTimeAsync(0);
      });
    });
  };
}

let server: Server;
let data: OverlayData;
beforeEach(async () => {
  vi.useFakeTimers();
  vi.stubGlobal('document', { hidden: false });
  vi.stubGlobal('window', { location: { pathname: '/' } });
  server = new Server();
  vi.stubGlobal('fetch', server.fetch);
  data = new OverlayData({ project: null, entity: null }, false);
  data.setRuns(['a', 'b']);
  await vi.advanceTimersByTimeAsync(0);
});
afterEach(() => {
  data.close();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const shown = (): string[] => data.runs.map(({ id, state }) => `${id} ${state}`);

describe('the runs that a workspace shows', () => {
  it('are asked for again while one of them is missing, with its points', async () => {
    data.add(new OverlayFeed({ source: 'logged', key: 'loss' }, 'step', () => undefined));
    await vi.advanceTimersByTimeAsync(100);
    await server.plans[0]!([run('a')], ['b']);
    expect([shown(), data.missing]).toEqual([['a finished'], ['b']]);
    const before = server.points.length;
    await vi.advanceTimersByTimeAsync(2000);
    await server.plans[1]!([run('a'), run('b')]);
    await vi.advanceTimersByTimeAsync(2000);
    expect([shown(), data.missing]).toEqual([['a finished', 'b finished'], []]);
    expect(server.points.slice(before).map((url) => url.searchParams.getAll('runs'))).toEqual([['b']]);
  });

  it('are those of the newest answer, although an older one comes later', async () => {
    data.reload();
    await server.plans[1]!([run('a'), run('b')]);
    await server.plans[0]!([run('a')], ['b']);
    expect(shown()).toEqual(['a finished', 'b finished']);
  });

  it('are asked for once more after a change that came soon after the answer: it may have been the end of a run', async () => {
    await server.plans[0]!([run('a', 'running'), run('b')]);
    data.changed(['a']);
    await vi.advanceTimersByTimeAsync(14_000);
    expect(server.plans).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(2000);
    await server.plans[1]!([run('a'), run('b')]);
    expect(shown()).toEqual(['a finished', 'b finished']);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(server.plans).toHaveLength(2);
  });

  it('keep what came while a part was shown', async () => {
    const feed = new OverlayFeed({ source: 'logged', key: 'loss' }, 'step', () => undefined);
    await server.plans[0]!([run('a', 'running'), run('b')]);
    data.add(feed);
    await vi.advanceTimersByTimeAsync(100);
    data.setZooms(new Map([['step', { min: 0, max: 1 }]]));
    data.changed(['a']);
    await vi.advanceTimersByTimeAsync(5000);
    data.setZooms(new Map([['step', { min: 0, max: 2 }]]));
    await vi.advanceTimersByTimeAsync(5000);
    const before = server.points.length;
    data.setZooms(new Map());
    await vi.advanceTimersByTimeAsync(5000);
    expect(server.points.slice(before).map((url) => url.searchParams.getAll('runs'))).toEqual([['a']]);
  });
});
