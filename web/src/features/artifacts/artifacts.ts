// Artifacts: versions of files that runs log and use.

import { projectPath } from '../../base/api';
import type { Artifact, Entry } from '../../base/wire';

export type ArtifactEntry = Entry;

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
