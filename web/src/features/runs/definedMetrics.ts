// How metrics are shown, as runs chose it with `define_metric`.

import { get, type DefinedMetrics, type Params } from '../../base/api';
import type { DefinedMetric } from '../../base/wire';

/** Whether a name matches a pattern. Takes linear time. */
export function matchesPattern(pattern: string, name: string): boolean {
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) return pattern === name;
  if (name.length < first.length + last.length || !name.startsWith(first) || !name.endsWith(last)) return false;
  let start = first.length;
  const end = name.length - last.length;
  for (const part of rest) {
    const index = name.indexOf(part, start);
    if (index < 0 || index + part.length > end) return false;
    start = index + part.length;
  }
  return true;
}

/** The definition of a metric: its own, and in what that leaves out the longest pattern that matches. */
export function definitionOf(defined: DefinedMetrics, name: string): DefinedMetric {
  const patterns = Object.keys(defined)
    .filter((pattern) => pattern !== name && matchesPattern(pattern, name))
    .sort((a, b) => a.length - b.length || (a < b ? -1 : 1));
  if (Object.hasOwn(defined, name)) patterns.push(name);
  return Object.assign({}, ...patterns.map((pattern) => defined[pattern])) as DefinedMetric;
}

/** The definitions of the newest runs that match the filters of a list of runs. */
export const loadDefinedMetrics = (filters: Params, signal?: AbortSignal): Promise<DefinedMetrics> =>
  get<DefinedMetrics>('defined-metrics', filters, signal);
