// Sweeps: searches for the best parameters over many runs.

import { projectPath, type Value } from '../../base/api';
import { dimensionOf, type Dimension, type Goal } from '../compare/compare';
import type { Ending, Json, Sweep, SweepRun } from '../../base/wire';

export type SweepState = 'pending' | 'running' | 'paused' | 'finished' | 'canceled';

export const STATE_TEXTS: Record<SweepState, string> = {
  pending: 'waits for an agent',
  running: 'running',
  paused: 'paused',
  finished: 'finished',
  canceled: 'canceled',
};

/** The path of a project's sweeps in the API; `rest`: below it. */
export function sweepsPath(entity: string | null, project: string, ...rest: string[]): string {
  const before = entity === null ? `projects/${encodeURIComponent(project)}` : projectPath({ entity, name: project });
  return [`${before}/sweeps`, ...rest.map(encodeURIComponent)].join('/');
}

export const isOver = ({ state }: Sweep): boolean => state === 'finished' || state === 'canceled';

/** Parameters by their whole names: `net.width` for one within another. */
export function flatParameters(parameters: Record<string, Json>, before = ''): Map<string, Json> {
  const values = new Map<string, Json>();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && typeof value === 'object' && !Array.isArray(value)) {
      for (const [inner, parameter] of flatParameters(value, `${before}${name}.`)) values.set(inner, parameter);
    } else values.set(before + name, value);
  }
  return values;
}

/** An axis for each parameter in which runs differ, and one for the metric. */
export function axesOf(runs: readonly SweepRun[], metric: string | null): Dimension[] {
  const flat = runs.map((run) => flatParameters(run.parameters));
  const names = [...new Set(flat.flatMap((parameters) => [...parameters.keys()]))].sort();
  const axes = names.flatMap((name) => {
    const axis = dimensionOf(
      `config.${name}`,
      flat.map((parameters) => parameters.get(name) ?? null),
    );
    return axis && !axis.constant ? [axis] : [];
  });
  const result = metric === null ? null : dimensionOf(`summary.${metric}`, runs.map(({ value }) => value));
  return result ? [...axes, result] : axes;
}

/** What the table is sorted by: `value`, `created`, or a parameter's name. */
export type Sorting = { by: string; descending: boolean };

/** The runs in an order; those without a value come last. */
export function sorted(runs: readonly SweepRun[], { by, descending }: Sorting): SweepRun[] {
  const keyed = runs.map((run) => ({ run, key: by === 'created' ? run.created_ms : by === 'value' ? run.value : (flatParameters(run.parameters).get(by) ?? null) }));
  const compare = new Intl.Collator('en', { numeric: true }).compare;
  keyed.sort((a, b) => {
    if (a.key === null || b.key === null) return Number(a.key === null) - Number(b.key === null);
    const order = typeof a.key === 'number' && typeof b.key === 'number' ? a.key - b.key : compare(textOf(a.key), textOf(b.key));
    return descending ? -order : order;
  });
  return keyed.map(({ run }) => run);
}

/** A parameter's value as text. */
export const textOf = (value: Json): string => (typeof value === 'string' ? value : typeof value === 'number' ? String(Number(value.toPrecision(6))) : JSON.stringify(value));

/** What a parameter of the configuration can be, in few words: `0.001 – 0.1, log_uniform_values`. */
export function searchText(definition: Json): string {
  if (definition === null || typeof definition !== 'object' || Array.isArray(definition)) return textOf(definition);
  const { value, values, min, max, mu, sigma, distribution } = definition;
  const kind = typeof distribution === 'string' ? `, ${distribution}` : '';
  if (Array.isArray(values)) return values.map(textOf).join(', ');
  if (value !== undefined) return textOf(value);
  if (min !== undefined && max !== undefined) return `${textOf(min)} – ${textOf(max)}${kind}`;
  if (mu !== undefined) return `mean ${textOf(mu)}, deviation ${textOf(sigma ?? 1)}${kind}`;
  return textOf(definition);
}

/** The parameters of a configuration by their whole names, with what they can be. */
export function searchedParameters(configuration: Record<string, Json>, before = ''): [string, string][] {
  const parameters = configuration['parameters'];
  if (parameters === null || typeof parameters !== 'object' || Array.isArray(parameters)) return [];
  return Object.entries(parameters ?? {}).flatMap(([name, definition]): [string, string][] => {
    const isNested = definition !== null && typeof definition === 'object' && !Array.isArray(definition) && 'parameters' in definition;
    return isNested ? searchedParameters(definition, `${before}${name}.`) : [[before + name, searchText(definition)]];
  });
}
