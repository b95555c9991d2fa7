// The addresses of runs, of versions and of their lineage.

import { projectHref, runHref } from '../../base/route.svelte';
import type { LineageNode, RunNode, VersionNode } from '../../base/wire';

/** The page of a run or version; null for one without a name. */
export function pageHref({ run, version }: LineageNode): string | null {
  if (run) return runHref({ id: run.run, entity: run.entity, project: run.project });
  return version && artifactsHref(version, { name: version.name, version: `${version.name}:v${version.version}` });
}

/** The lineage of a run or version. */
export const lineageHref = ({ run, version }: { run?: Pick<RunNode, 'run' | 'entity' | 'project'> | null; version?: Pick<VersionNode, 'name' | 'version' | 'entity' | 'project'> | null }): string | null => {
  if (run) return artifactsHref(run, { lineage: 'run', run: run.run });
  return version ? artifactsHref(version, { name: version.name, version: `${version.name}:v${version.version}`, lineage: 'version' }) : null;
};

function artifactsHref({ entity, project }: { entity: string | null; project: string }, parameters: Record<string, string>): string {
  return `${projectHref(project, entity, 'artifacts')}?${new URLSearchParams({ ...(entity === null && { artifacts: '1' }), ...parameters })}`;
}
