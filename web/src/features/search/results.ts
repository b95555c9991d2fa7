// What the server finds for a text: runs, projects, hosts, people, artifacts and reports.

import { get, type Params } from '../../base/api';
import { entityHref, hostHref, projectHref, reportHref, runHref } from '../../base/route.svelte';
import type { FleetPage, MatchingCollections, Project, ReportsPage, RunPage, UsersPage } from '../../base/wire';
import { pageHref } from '../lineage/links';
import { matchingCommands, type Command, type CommandGroup } from './commands';

const MAX_RUNS = 8;
const MAX_OTHERS = 5;
/** Projects among which those that begin so come first. */
const MAX_RANKED = 50;
/** The server finds users from so many characters on. */
const MIN_USER_CHARACTERS = 2;

interface Source {
  title: string;
  find: (text: string, signal: AbortSignal) => Promise<Command[]>;
}

const projectText = (entity: string | null, project: string): string => (entity === null ? project : `${entity}/${project}`);

const ask = <T>(path: string, params: Params, signal: AbortSignal): Promise<T> => get<T>(path, params, signal);

const RUNS: Source = {
  title: 'Runs',
  find: async (text, signal) =>
    (await ask<RunPage>('runs', { text, limit: MAX_RUNS }, signal)).runs.map((run) => ({
      id: `run ${run.entity ?? ''}/${run.id}`,
      title: run.name,
      note: `${run.state} · ${projectText(run.entity, run.project)}`,
      href: runHref(run),
    })),
};

const PROJECTS: Source = {
  title: 'Projects',
  find: async (text, signal) => {
    const projects = (await ask<Project[]>('projects', { text, limit: MAX_RANKED }, signal)).map(({ name, entity }) => ({
      id: `project ${entity ?? ''}/${name}`,
      title: name,
      note: entity ?? undefined,
      href: projectHref(name, entity),
    }));
    return matchingCommands(projects, text, MAX_OTHERS);
  },
};

const HOSTS: Source = {
  title: 'Hosts',
  find: async (text, signal) =>
    (await ask<FleetPage>('hosts', { text, limit: MAX_OTHERS }, signal)).hosts.map(({ name, state }) => ({
      id: `host ${name}`,
      title: name,
      note: state,
      href: hostHref(name),
    })),
};

const PEOPLE: Source = {
  title: 'People',
  find: async (text, signal) => {
    if (text.length < MIN_USER_CHARACTERS) return [];
    const { users } = await ask<UsersPage>('users', { query: text, limit: MAX_OTHERS }, signal);
    return users.map(({ name, display_name }) => ({ id: `user ${name}`, title: display_name, note: name, href: entityHref(name) }));
  },
};

const ARTIFACTS: Source = {
  title: 'Artifacts',
  find: async (text, signal) => {
    const { collections, datasets, models } = await ask<MatchingCollections>('artifacts', { text, limit: MAX_OTHERS }, signal);
    return [
      ...collections.map(({ entity, project, name, type }) => {
        const query = new URLSearchParams({ ...(entity === null && { artifacts: '1' }), name });
        return { id: `artifact ${projectText(entity, project)}/${name}`, title: name, note: `${type} · ${projectText(entity, project)}`, href: `${projectHref(project, entity, 'artifacts')}?${query}` };
      }),
      ...datasets.map((dataset) => ({ id: `dataset ${dataset.id}`, title: dataset.name, note: `dataset · ${projectText(dataset.entity, dataset.project)}`, href: pageHref({ dataset }) ?? '' })),
      ...models.map((model) => ({ id: `model ${model.model_id}`, title: model.name, note: `logged model · ${projectText(model.entity, model.project)}`, href: pageHref({ model }) ?? '' })),
    ].slice(0, MAX_OTHERS);
  },
};

const REPORTS: Source = {
  title: 'Reports',
  find: async (text, signal) =>
    (await ask<ReportsPage>('reports', { text, limit: MAX_OTHERS }, signal)).reports.map((report) => ({
      id: `report ${report.id}`,
      title: report.title,
      note: projectText(report.entity, report.project),
      href: reportHref(report),
    })),
};

/** What texts mention. */
export const MENTIONED: readonly Source[] = [PEOPLE, RUNS, ARTIFACTS];

/** `shared`, `accounts`: what the server is; the local page has runs, projects and hosts only. */
export function sourcesOf({ shared, accounts }: { shared: boolean; accounts: boolean }): Source[] {
  return [RUNS, PROJECTS, HOSTS, ...(shared ? [ARTIFACTS, REPORTS] : []), ...(accounts ? [PEOPLE] : [])];
}

/**
 * Ask all sources. `onfound` is called as each answers, with the groups so far in their order; a source that fails does not
 * keep the others from answering.
 *
 * Returns the errors.
 */
export async function findAll(sources: readonly Source[], text: string, signal: AbortSignal, onfound: (groups: CommandGroup[]) => void): Promise<unknown[]> {
  const lists: Command[][] = sources.map(() => []);
  const problems: unknown[] = [];
  await Promise.all(
    sources.map(async ({ find }, number) => {
      try {
        lists[number] = await find(text, signal);
      } catch (problem) {
        if (!signal.aborted) problems.push(problem);
      }
      if (!signal.aborted) onfound(sources.map(({ title }, of) => ({ title, commands: lists[of]! })).filter(({ commands }) => commands.length > 0));
    }),
  );
  return problems;
}
