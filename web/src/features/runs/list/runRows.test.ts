import { describe, expect, it } from 'vitest';
import type { Params } from '../../../base/api';
import { BLOCK, RunRows } from './runRows.svelte';
import type { ListedRun, RunPage } from '../../../base/wire';

/** A server with runs numbered from 0; it notes the blocks that it was asked for. */
function serverOf(total: number) {
  const asked: number[] = [];
  const state = { total, prefix: '' };
  const ask = async (params: Params): Promise<RunPage> => {
    const skip = Number(params.skip ?? 0);
    asked.push(skip / BLOCK);
    const number = Math.max(0, Math.min(BLOCK, state.total - skip));
    return { runs: Array.from({ length: number }, (_, i) => ({ id: `${state.prefix}${skip + i}`, entity: null }) as ListedRun), total: state.total, next: null, pending: 0 };
  };
  return { ask, asked, state };
}

describe('rows', () => {
  it('are requested where they are in view', async () => {
    const { ask, asked } = serverOf(100_000);
    const rows = new RunRows(ask);
    await rows.list({ sort: 'name' });
    expect(rows.total).toBe(100_000);
    rows.show(73_210, 73_260);
    expect(rows.row(73_250)).toBeUndefined();
    await rows.refresh();
    expect(rows.row(73_250)?.id).toBe('73250');
    expect(asked).toEqual([0, 732]);
    expect((await rows.range(99, 101)).map(({ id }) => id)).toEqual(['99', '100', '101']);
    rows.close();
  });
  it('of the list before stay until the new ones come', async () => {
    const { ask, state } = serverOf(5);
    const rows = new RunRows(ask);
    await rows.list({ filter: 'a' });
    state.prefix = 'b';
    const coming = rows.list({ filter: 'b' });
    expect([rows.stale, rows.row(0)?.id]).toEqual([true, '0']);
    await coming;
    expect([rows.stale, rows.row(0)?.id]).toEqual([false, 'b0']);
    rows.close();
  });
  it('out of view are dropped when another number of runs matches', async () => {
    const { ask, state } = serverOf(1000);
    const rows = new RunRows(ask);
    await rows.list({});
    await rows.range(900, 901);
    state.total = 1001;
    await rows.refresh();
    expect([rows.total, rows.row(900), rows.row(0)?.id]).toEqual([1001, undefined, '0']);
    rows.close();
  });
  it('are requested once more after a change while they were being answered', async () => {
    const { ask, asked, state } = serverOf(2);
    const rows = new RunRows(async (params) => {
      const answer = await ask(params);
      await Promise.resolve();
      return answer;
    });
    const listed = rows.list({});
    [state.total, state.prefix] = [1, 'later '];
    await rows.refresh();
    await listed;
    expect([asked, rows.total, rows.row(0)?.id]).toEqual([[0, 0], 1, 'later 0']);
    rows.close();
  });
  it('say what the server says is wrong', async () => {
    const rows = new RunRows(() => Promise.reject(new Error('no')));
    await rows.list({});
    expect(rows.error?.message).toBe('no');
    rows.close();
  });
});
