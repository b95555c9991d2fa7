import { expect, it } from 'vitest';
import type { RunVerdict } from '../../../base/wire';
import { columnChoices } from './columnChoices';
import { isSick, lostText, verdictOf } from '../../findings/runVerdict';
import { cellText, columnOf, columnsOf, statisticsText, totalText, usualColumns, usualSort, valueText } from './columns';
import { idFilters, withoutHead } from './csv';
import { widthsOf } from './layout';
import { itemAt, type Section } from './runList.svelte';
import { BrowserViews, queryOf, viewOfQuery } from './savedViews';
import { sparklinePath } from './sparkline';
import { outcomeText } from './bulk';
import type { RunRow } from '../../../base/api';
import type { RunRows } from './runRows.svelte';
import type { RunGroup } from '../../../base/wire';

it('columns are known by name; the name of the run is the first', () => {
  expect(columnsOf(['state', 'config.lr', 'state', 'nothing', 'config.', 'toString']).map(({ name }) => name)).toEqual(['name', 'state', 'config.lr']);
  expect(columnOf('system.gpu.max')).toMatchObject({ sort: 'system.gpu.max', number: true, group: null });
  expect(columnOf('sparkline.loss')).toMatchObject({ title: 'loss', sort: null });
  expect(columnChoices(['config.lr', 'summary.loss'], ['config.gone']).map(({ name }) => name)).toEqual(expect.arrayContaining(['config.lr', 'config.gone', 'summary.loss', 'sparkline.loss', 'system.energy', 'notes']));
});

it('columns with the same title say what each is', () => {
  expect(columnsOf(['config.lr', 'summary.lr', 'sparkline.lr', 'state']).map(({ title }) => title)).toEqual(['Run', 'lr (config)', 'lr (result)', 'lr (course)', 'State']);
});

it('a table begins with what judges the runs, and what differs', () => {
  const shown = { withProject: false, runs: [], usual: { goal: { name: 'val/loss', goal: 'minimize' as const }, config: ['config.lr'] } };
  expect(usualColumns(shown)).toEqual(['state', 'summary.val/loss', 'sparkline.val/loss', 'config.lr', 'duration', 'started', 'host', 'cpu', 'memory']);
  expect(usualSort(shown)).toEqual([{ name: 'summary.val/loss', descending: false }]);
  const newest = [{ name: 'started_ms', descending: true }];
  expect(usualSort({ ...shown, usual: null })).toEqual(newest);
  expect(usualSort({ ...shown, usual: { goal: { name: 'a', goal: null }, config: [] } })).toEqual(newest);
  expect(usualSort({ ...shown, usual: { goal: { name: 'a,b', goal: 'maximize' }, config: [] } })).toEqual(newest);
});

it('values have as few digits as tell them from each other', () => {
  expect([0.1 + 0.2, 1e-7, 0.00086123456, 0.0005, 12345678, true, null, undefined, 'a', [1, 2]].map(valueText)).toEqual(['0.3', '1e-7', '8.6123e-4', '0.0005', '12345678', 'true', '', '', 'a', '[1,2]']);
  expect(statisticsText('summary.loss', { min: 0.5, mean: 1, max: 2, n: 3 })).toBe('mean 1 · min 0.5 · max 2 of 3 values');
  expect(totalText('summary.loss', { min: 0.5, mean: 1, max: 2, n: 3, sum: 3 }, 'sum')).toBe('Σ 3');
  expect(totalText('duration', { min: 1000, mean: 60_000, max: 2, n: 3, sum: 3 }, 'mean')).toBe('⌀ 1 min 00 s');
  expect(totalText('summary.loss', { min: 0.5, mean: 1, max: 2, n: 3 }, 'sum')).toBe(''); // an earlier server
});

it('what is left of the width goes to the name, and pinned columns stay beside it', () => {
  const columns = columnsOf(['state', 'config.lr']);
  const wide = widthsOf(columns, ['state'], 1000, 1);
  expect(wide.total).toBe(1000);
  expect(wide.lefts).toEqual([34, 34 + wide.widths[0]!, null]);
  expect(widthsOf(columnsOf(['state', 'host', 'notes', 'tags', 'user']), ['state', 'host', 'notes'], 400, 1).lefts.filter((left) => left !== null)).toHaveLength(1);
});

it('columns have the widths that the user chose, and the name that of the user too', () => {
  const columns = columnsOf(['state', 'config.lr']);
  expect(widthsOf(columns, [], 1000, 1, { 'config.lr': 300 }).widths).toEqual([1000 - 34 - 110 - 300, 110, 300]);
  expect(widthsOf(columns, [], 1000, 1, { name: 200 }).widths[0]).toBe(200);
});

it('groups and their runs are one list', () => {
  const group = { values: { tag: 'a' }, runs: 2, states: {}, started_ms: null } as unknown as RunGroup;
  const rows = { total: 2, row: (index: number) => ({ id: `r${index}` }) as RunRow } as unknown as RunRows;
  const sections: Section[] = [{ key: '1', group, rows }, { key: '2', group, rows: null }];
  expect([0, 1, 2, 3, 4].map((index) => itemAt(sections, index)).map((item) => (item.kind === 'run' ? item.run?.id : item.kind))).toEqual(['group', 'r0', 'r1', 'group', 'more']);
});

it('a small line has gaps, and a point for a value between two', () => {
  const line = sparklinePath([0, 1, null, 1, null, 0, 1], 64, 20)!;
  expect(line.path.match(/M/g)).toHaveLength(3);
  expect([line.first, line.last, line.low, line.high]).toEqual([0, 1, 0, 1]);
  expect(sparklinePath([null, null], 10, 10)).toBeNull();
  expect(sparklinePath([5], 10, 10)!.path).toBe('M2.0 5.0L2.0 5.0');
});

it('the selected runs are exported by filters of bounded length', () => {
  const filters = idFilters(Array.from({ length: 200 }, (_, i) => `run-${i}`));
  expect(filters.length).toBe(3);
  expect(idFilters(['a'.repeat(1000), 'b'.repeat(1000)])).toHaveLength(2);
  expect(withoutHead('id,"a\nb"\n1,2\n3,4\n')).toBe('1,2\n3,4\n');
});

it('views are kept in the browser', async () => {
  const kept = new Map<string, string>();
  const storage = { getItem: (key: string) => kept.get(key) ?? null, setItem: (key: string, value: string) => void kept.set(key, value) };
  const views = new BrowserViews({ project: 'digits', entity: null }, storage);
  const query = queryOf(viewOfQuery('q=state:failed&by=tag&expanded=x'));
  expect(query).toBe('q=state%3Afailed&by=tag');
  const view = await views.create('failures', query);
  await views.update(view, { name: 'Failures' });
  expect((await views.all()).map(({ name }) => name)).toEqual(['Failures']);
  expect(await new BrowserViews({ project: 'other', entity: null }, storage).all()).toEqual([]);
  await views.remove(view);
  expect(await views.all()).toEqual([]);
  kept.set('runvitals.views.digits', '{"damaged": 1}');
  expect(await views.all()).toEqual([]);
});

it('says how many runs were changed, and what kept the others from it', () => {
  const run = { id: 'a', entity: null };
  expect(outcomeText({ done: [run], failed: [] }, 'deleted')).toBe('1 run was deleted.');
  expect(outcomeText({ done: [run, run], failed: [{ run, error: 'not allowed' }] }, 'deleted')).toBe('2 runs were deleted. 1 run could not be deleted: a: not allowed');
});

it('the verdict has a column where runs were judged, which can be sorted and filtered', () => {
  const plain = { tags: [], author: null, entity: null, hosts: [] } as unknown as RunRow;
  const verdict: RunVerdict = { id: 'hang', text: 'It hangs.', severity: 'critical', lost_device_hours: 3.97, findings: ['hang'], judged_ms: 0 };
  const judged = { ...plain, verdict } as RunRow;
  expect(cellText(judged, 'verdict', 0)).toBe('hang');
  expect(cellText(judged, 'lost_hours', 0)).toBe('4 h');
  expect(cellText(plain, 'verdict', 0) + cellText(plain, 'lost_hours', 0)).toBe('');
  expect(columnOf('verdict')).toMatchObject({ sort: 'verdict', descendingFirst: true });
  expect(columnOf('lost_hours')).toMatchObject({ sort: 'lost_hours', descendingFirst: true });
  expect([isSick(verdictOf(judged)), isSick(verdictOf(plain)), isSick({ ...verdict, severity: 'healthy' })]).toEqual([true, false, false]);
  expect(lostText({ ...verdict, severity: 'warning', lost_device_hours: 1234.5 })).toBe('1,235 h');
});
