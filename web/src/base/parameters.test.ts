import { describe, expect, it } from 'vitest';
import { notApplied, parametersOf } from './parameters';
import type { Route } from './route.svelte';

const SOURCES: Record<string, string> = import.meta.glob('../**/*.{ts,svelte}', { eager: true, query: '?raw', import: 'default' });

/** The parameters that the sources in some folders and files read, by their names in the code. */
function readIn(...paths: string[]): string[] {
  const files = Object.entries(SOURCES).filter(([file]) => !file.endsWith('.test.ts') && paths.some((path) => file.startsWith(`../${path}`)));
  return files.flatMap(([, text]) => [...text.matchAll(/query\.(?:get|getAll|has)\('([\w.]+)'\)/g)].map((match) => match[1]!));
}

const RUN_PARTS = ['RunPage.svelte', 'RunAlerts.svelte', 'LogOutput.svelte', 'RunOverview.svelte', 'replay.svelte.ts', 'charts'].map((name) => `features/runs/${name}`);
const FOLDERS: Partial<Record<Route['page'], string[]>> = {
  home: ['features/home'],
  runs: ['features/runs/RunsPage.svelte', 'features/runs/list/view.ts', 'features/runs/list/RunsTable.svelte'],
  run: [...RUN_PARTS, 'chart'],
  hosts: ['features/hosts/hosts.ts', 'features/hosts/HostsPage.svelte'],
  host: ['features/hosts/HostPage.svelte'],
};

describe('parameters of the address', () => {
  it.each(Object.entries(FOLDERS))('of %s are known as far as its code reads them', (page, paths) => {
    const read = readIn(...paths);
    expect(read.length).toBeGreaterThan(0);
    expect(parametersOf(page as Route['page'])).toEqual(expect.arrayContaining(read));
  });

  it('are named if the page does not apply them', () => {
    const query = new URLSearchParams('charts=loss&chart.loss=y%3Dlog&prject=digits&y=cubic&from=12');
    expect(notApplied('run', query).map(({ name }) => name)).toEqual(['prject', 'y', 'from']);
    expect(notApplied('hosts', new URLSearchParams('chart.loss=1')).map(({ name }) => name)).toEqual(['chart.loss']);
    expect(notApplied('run', new URLSearchParams('from=1&to=2&x=metric:a%0Ab'))).toEqual([]);
  });
});
