// Artifacts: versions of files that runs log and use.

import { request } from '../../base/address';
import { ApiError, NO_RESPONSE, projectPath } from '../../base/api';
import { guest } from '../../base/guest.svelte';
import type { Artifact, Entry } from '../../base/wire';

export type ArtifactEntry = Entry;

/** What the paths of a project in the API begin with. */
export const beforeProject = (entity: string | null, project: string): string => (entity === null ? `projects/${encodeURIComponent(project)}` : projectPath({ entity, name: project }));

/** The path of a project's artifacts in the API; `rest`: names below it. */
export function artifactsPath(entity: string | null, project: string, ...rest: (string | number)[]): string {
  return [`${beforeProject(entity, project)}/artifacts`, ...rest.map(encodeURIComponent)].join('/');
}

/** Where a file of a version can be downloaded, or is shown. */
export function contentHref(artifact: Artifact, path: string, download = true): string {
  const query = new URLSearchParams({ path, ...(download && { download: path.split('/').pop() ?? path }) });
  return `/api/v1/${artifactsPath(artifact.entity, artifact.project, artifact.name, `v${artifact.version}`, 'content')}?${query}`;
}

/** A file with its type, by its address. */
export async function loadContent(href: string, signal: AbortSignal): Promise<Blob> {
  let response: Response;
  try {
    response = await request(href, { signal, headers: guest.headers() });
  } catch (error) {
    if (signal.aborted) throw error;
    throw new ApiError(0, NO_RESPONSE);
  }
  if (response.ok) return response.blob();
  throw new ApiError(response.status, response.status === 404 ? 'Its content is not here.' : `The server responded with ${response.status}.`);
}

const DAY_S = 86_400;

/** A time to live as typed, in days; empty: versions are kept. */
export function daysOf(seconds: number | null): string {
  return seconds === null ? '' : String(Number((seconds / DAY_S).toFixed(6)));
}

/** A typed number of days in seconds; null: versions are kept. */
export function secondsOf(days: string | number | null): number | null {
  const typed = String(days ?? '').trim();
  return typed === '' ? null : Math.round(Number(typed) * DAY_S);
}

/** What a time to live means. */
export function ttlText(seconds: number | null): string {
  if (seconds === null) return 'Versions are kept until they are deleted';
  return `Versions are deleted ${daysOf(seconds)} ${seconds === DAY_S ? 'day' : 'days'} after they were logged, unless they are linked`;
}
