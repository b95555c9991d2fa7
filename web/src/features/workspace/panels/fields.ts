// Panels that place runs by their fields: the server reads these of all runs that match.

import { dimensionOf, type Dimension, type Goal } from '../../compare/compare';
import type { Cell } from '../../../base/csv';
import type { ComparedFields, Importances } from '../../../base/wire';
import { shownText, type LayoutPanel } from './layout';

const FIELD = /^(config|summary|system)\../;

export const isField = (text: string): boolean => FIELD.test(shownText(text.trim()));

/** The field that a text names: what is logged is in the summary. */
export const fieldOf = (text: string): string => (isField(text) ? shownText(text.trim()) : `summary.${shownText(text.trim())}`);

/** Whether a panel shows fields of runs instead of their lines. */
export const isOfFields = ({ kind, metrics, across }: LayoutPanel): boolean =>
  kind === 'parallel' || kind === 'importance' || (kind === 'scatter' && isField(across) && metrics.length > 0 && metrics.every(isField));

/** The fields that a panel names, each once; none: those that are usual. */
export const fieldsOf = ({ kind, metrics, across }: LayoutPanel): string[] => {
  const named = kind === 'scatter' ? [across, ...metrics.slice(0, 1)] : kind === 'parallel' && metrics.length > 0 ? [...metrics, across] : metrics;
  return [...new Set(named.filter((text) => text.trim()).map(fieldOf))];
};

/** What a panel of fields draws. */
export interface FieldsData {
  answer: ComparedFields;
  /** By name. */
  dimensions: ReadonlyMap<string, Dimension>;
  /** What the colours mean, and which of its values are better. */
  colourBy: Dimension | null;
  goal: Goal | null;
}

export function fieldsData(panel: LayoutPanel, answer: ComparedFields): FieldsData {
  const all = answer.fields.flatMap(({ name, values }) => dimensionOf(name, values) ?? []);
  const dimensions = new Map(all.map((dimension) => [dimension.name, dimension]));
  const ofGoal = answer.goal && `summary.${answer.goal.name}`;
  const chosen = panel.kind === 'parallel' && panel.across.trim() ? fieldOf(panel.across) : ofGoal;
  return { answer, dimensions, colourBy: (chosen && dimensions.get(chosen)) || null, goal: chosen === ofGoal ? (answer.goal?.goal ?? null) : null };
}

/** The axes of parallel coordinates: those that the panel names, otherwise all. */
export function axesOf(panel: LayoutPanel, { dimensions }: FieldsData): Dimension[] {
  const named = panel.metrics.filter((text) => text.trim()).map(fieldOf);
  return named.length > 0 ? named.flatMap((name) => dimensions.get(name) ?? []) : [...dimensions.values()];
}

/** Across and up, of a scatter plot; null: no run has one of them. */
export function pairOf(panel: LayoutPanel, { dimensions }: FieldsData): readonly [Dimension, Dimension] | null {
  const [x, y] = [dimensions.get(fieldOf(panel.across)), dimensions.get(fieldOf(panel.metrics[0] ?? ''))];
  return x && y ? [x, y] : null;
}

/** How many values are NaN or infinite, in words; empty if none is. */
export function notFiniteText({ fields, runs }: ComparedFields): string {
  return fields.filter(({ not_finite }) => not_finite > 0).map(({ name, not_finite }) => `${name}: ${not_finite} of ${runs.length} not finite`).join(', ');
}

export const fieldRows = ({ runs, fields }: ComparedFields): Cell[][] => [
  ['run', 'name', ...fields.map(({ name }) => name)],
  ...runs.map(({ id, name }, i) => [id, name, ...fields.map(({ values }) => values[i] ?? null)]),
];

export const importanceRows = ({ parameters }: Importances): Cell[][] => [
  ['parameter', 'importance', 'correlation', 'values'],
  ...parameters.map(({ name, share, correlation, values }) => [name, share, correlation, values]),
];
