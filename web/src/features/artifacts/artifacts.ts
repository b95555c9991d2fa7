// Artifacts: versions of files that runs log and use.

import { projectPath } from '../../base/api';

export interface Artifact {
  entity: string | null;
  project: string;
  name: string;
  type: string;
  version: number;
  aliases: string[];
  description: string;
  metadata: Record<string, unknown>;
  bytes: number;
  files: number;
  created_ms: number;
  /** The run that logged it, if the user may read it. */
  run: string | null;
  used_by: string[];
}

export interface Collection {
  name: string;
  type: string;
  kind: 'sequence' | 'portfolio';
  description: string;
  versions: number;
  updated_ms: number;
}

export interface ArtifactEntry {
  path: string;
  bytes: number | null;
  /** Where the content is; null: it is a file. */
  reference: string | null;
}

/** The path of a project's artifacts in the API; `rest`: names below it. */
export function artifactsPath(entity: string | null, project: string, ...rest: (string | number)[]): string {
  const before = entity === null ? `projects/${encodeURIComponent(project)}` : projectPath({ entity, name: project });
  return [`${before}/artifacts`, ...rest.map(encodeURIComponent)].join('/');
}

/** Where a file of a version can be downloaded. */
export function contentHref(artifact: Artifact, path: string): string {
  const query = new URLSearchParams({ path, download: path.split('/').pop() ?? path });
  return `/api/v1/${artifactsPath(artifact.entity, artifact.project, artifact.name, `v${artifact.version}`, 'content')}?${query}`;
}
