// What is wrong in the form of a panel, by field.

import { parseExpression, SyntaxProblem } from './expression';
import { parsePattern } from './keyPattern';
import type { LayoutPanel } from './layout';

export { matchesOf, MAX_MATCHES } from './panelLines';

const MAX_PERCENTILES = 11;

/** The percentiles that a text lists; null if it is not such a list. */
export function percentilesOf(text: string): number[] | null {
  const parts = text.split(/[\s,;]+/).filter(Boolean);
  const shares = parts.map(Number);
  const fits = shares.length > 0 && shares.length <= MAX_PERCENTILES && shares.every((share) => share >= 0 && share <= 100);
  return fits ? [...new Set(shares)].sort((a, b) => a - b) : null;
}

function problemOf(parse: (text: string) => unknown, text: string): string {
  try {
    parse(text);
    return '';
  } catch (problem) {
    if (problem instanceof SyntaxProblem) return problem.message;
    throw problem;
  }
}

/** Errors of fields that are still empty begin with this: they are shown when the form is submitted. */
export const MISSING = 'Name';

/** Errors by field: `metrics[0]`, `across`, `pattern`, `percentiles`. */
export function fieldErrors(panel: LayoutPanel, way: 'names' | 'pattern', metrics: readonly string[], percentiles: string): Record<string, string> {
  if (panel.kind === 'text' || panel.kind === 'parallel' || panel.kind === 'importance') return {};
  const errors: Record<string, string> = {};
  const expect = (field: string, text: string, parse: (text: string) => unknown, expected: string): void => {
    const problem = text.trim() ? problemOf(parse, text) : `${MISSING} ${expected}.`;
    if (problem) errors[field] = problem;
  };
  if (way === 'pattern') expect('pattern', panel.pattern, parsePattern, 'a pattern');
  else {
    const named = metrics.filter((text) => text.trim());
    metrics.forEach((text, i) => (text.trim() || named.length === 0) && expect(`metrics[${i}]`, text, parseExpression, 'a metric or an expression'));
  }
  if (panel.kind === 'scatter') expect('across', panel.across, parseExpression, 'a metric or an expression');
  if (panel.kind === 'percentile' && !percentilesOf(percentiles)) errors.percentiles = `Expected at most ${MAX_PERCENTILES} numbers from 0 to 100.`;
  return errors;
}
