// Registries: collections of models and other artifacts of a team or of the organisation.

import type { LinkedVersion, LinkedVersionDetail, RunDetail } from '../../base/wire';

export interface Place {
  team: string;
  registry: string;
}

/** By what name addresses name the organisation as the owner of registries. */
export const ORGANISATION = 'organisation';

/** Who may read a registry of a team or of the organisation: values, and what they are called. */
export function readersOf(team: string): readonly (readonly [string, string])[] {
  const all = ['organisation', 'all of the organisation'] as const;
  return team === ORGANISATION ? [all, ['restricted', 'its members']] : [['team', `the team ${team}`], all];
}

/** The path of a registry in the API; `rest`: names below it. */
export function registryPath({ team, registry }: Place, ...rest: (string | number)[]): string {
  return ['teams', team, 'registries', registry, ...rest].map(encodeURIComponent).join('/');
}

/** Where a file of a version can be downloaded, or is shown. */
export function fileHref(registryId: Place, collection: string, version: number, path: string, download: boolean): string {
  const file = `${registryPath(registryId, 'collections', collection, 'versions', version)}/files/${path.split('/').map(encodeURIComponent).join('/')}`;
  return `/api/v1/${file}${download ? `?${new URLSearchParams({ download: path.split('/').pop() ?? path })}` : ''}`;
}

export interface Usage {
  title: string;
  code: string;
}

/** How to use a version, by client. Names in it are quoted as the language has it. */
export function usageOf(registryId: Place, version: Pick<LinkedVersionDetail, 'collection' | 'version' | 'aliases' | 'mlflow_name'>, server: string): Usage[] {
  const { collection, version: number } = version;
  const alias = version.aliases.find((name) => name !== 'latest') ?? `v${number}`;
  const text = (value: string): string => JSON.stringify(value);
  const shell = (value: string): string => `'${value.replaceAll("'", `'\\''`)}'`;
  const wandb = `${registryId.team}/wandb-registry-${registryId.registry}/${collection}:${alias}`;
  return [
    { title: 'Python', code: `import runvitals\n\nclient = runvitals.Client(${text(server)})\nfolder = client.registry(${text(`${registryId.team}/${registryId.registry}`)}).download(${text(`${collection}:${alias}`)})` },
    { title: 'Command', code: `runvitals registry get ${shell(`${registryId.team}/${registryId.registry}/${collection}:${alias}`)}` },
    { title: 'wandb', code: `import wandb  # WANDB_BASE_URL=${server}\n\nfolder = wandb.Api().artifact(${text(wandb)}).download()` },
    { title: 'MLflow', code: `import mlflow\n\nmlflow.set_tracking_uri(${text(server)})\nfolder = mlflow.artifacts.download_artifacts(${text(`models:/${version.mlflow_name}/${number}`)})` },
  ];
}

/** A value of two versions; `differs`: it is not the same. */
export interface ComparedRow {
  name: string;
  left: string;
  right: string;
  differs: boolean;
}

/** Values of two objects side by side: those that differ first, each part by name. */
export function compared(left: Record<string, unknown>, right: Record<string, unknown>): ComparedRow[] {
  const [leftValues, other] = [flat(left), flat(right)];
  const rows = [...new Set([...leftValues.keys(), ...other.keys()])].sort().map((name) => {
    const values = [leftValues.get(name), other.get(name)] as const;
    return { name, left: values[0] ?? '–', right: values[1] ?? '–', differs: values[0] !== values[1] };
  });
  return [...rows.filter(({ differs }) => differs), ...rows.filter(({ differs }) => !differs)];
}

/** Nested values by their names with dots, as text. */
function flat(value: Record<string, unknown>, prefix = '', into = new Map<string, string>()): Map<string, string> {
  for (const [name, item] of Object.entries(value)) {
    if (item !== null && typeof item === 'object' && !Array.isArray(item)) flat(item as Record<string, unknown>, `${prefix}${name}.`, into);
    else into.set(prefix + name, typeof item === 'string' ? item : JSON.stringify(item));
  }
  return into;
}

/** What a registry says of a version, to be compared. */
export function aboutVersion(version: LinkedVersion): Record<string, unknown> {
  const { author, bytes, files, digest, stage, tags, properties, aliases } = version;
  return { author, bytes, files, digest, stage, tags: tags.join(', '), aliases: aliases.join(', '), ...properties };
}

/** The configuration and the last metrics of a run. */
export const valuesOf = (run: RunDetail | null): { config: Record<string, unknown>; metrics: Record<string, unknown> } => ({
  config: (run?.config ?? {}) as Record<string, unknown>,
  metrics: (run?.summary ?? {}) as Record<string, unknown>,
});

/** A field of a run as a cell of a table. */
export function fieldText(value: string | number | undefined): string {
  if (value === undefined) return '–';
  return typeof value === 'number' ? String(Number(value.toPrecision(5))) : value;
}
