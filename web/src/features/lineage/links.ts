// The addresses of runs, versions, datasets and logged models, and of their lineage.

import { projectHref, runHref } from '../../base/route.svelte';
import type { DatasetNode, ModelNode, RunNode, VersionNode } from '../../base/wire';

type Place<Node> = Node & { entity: string | null; project: string };
/** What has a page: the one that is not null. */
export interface Shown {
  run?: Place<Pick<RunNode, 'run'>> | null;
  version?: Place<Pick<VersionNode, 'name' | 'version'>> | null;
  dataset?: Place<Pick<DatasetNode, 'id'>> | null;
  model?: Place<Pick<ModelNode, 'model_id'>> | null;
}

/** The page of something; null for a node without a name. */
export function pageHref(node: Shown): string | null {
  if (node.run) return runHref({ id: node.run.run, entity: node.run.entity, project: node.run.project });
  return ofProject(node, {});
}

/** The lineage of something. */
export function lineageHref(node: Shown): string | null {
  if (node.run) return artifactsHref(node.run, { lineage: 'run', run: node.run.run });
  return ofProject(node, { lineage: node.version ? 'version' : '1' });
}

function ofProject({ version, dataset, model }: Shown, more: Record<string, string>): string | null {
  if (version) return artifactsHref(version, { name: version.name, version: `${version.name}:v${version.version}`, ...more });
  if (dataset) return artifactsHref(dataset, { dataset: String(dataset.id), ...more });
  return model ? artifactsHref(model, { model: model.model_id, ...more }) : null;
}

function artifactsHref({ entity, project }: { entity: string | null; project: string }, parameters: Record<string, string>): string {
  return `${projectHref(project, entity, 'artifacts')}?${new URLSearchParams({ ...(entity === null && { artifacts: '1' }), ...parameters })}`;
}
