// Lists of series and names that may be longer than one response of the server.

import type { SeriesInfo } from '../../../base/api';
import type { Section } from './chartPlan';
import { seriesId } from '../../../chart/points';

/** Names in one response of the server; a response with as many may have a successor. */
export const NAMES_PAGE = 10_000;
/** Charts shown at first, and added by "Show more": each is an element to lay out. */
export const CHARTS_SHOWN = 200;
/** The server's limit for a glob is 512 characters; a letter takes up to four. */
const MAX_LETTERS = 100;

/** A glob for keys with the longest of some words, in any case: the server's globs distinguish it. */
export function keyGlob(words: string): string | null {
  const longest = words.split(/\s+/).reduce((best, word) => (word.length > best.length ? word : best), '');
  if (longest === '') return null;
  return `*${[...longest].slice(0, MAX_LETTERS).map(anyCase).join('')}*`;
}

function anyCase(letter: string): string {
  const [lower, upper] = [letter.toLowerCase(), letter.toUpperCase()];
  if (lower !== upper && lower.length === 1 && upper.length === 1) return `[${lower}${upper}]`;
  return '*?['.includes(letter) ? `[${letter}]` : letter;
}

/** Two lists without duplicates. */
export function merged(series: readonly SeriesInfo[], more: readonly SeriesInfo[]): SeriesInfo[] {
  const ids = new Set(series.map(seriesId));
  return [...series, ...more.filter((item) => !ids.has(seriesId(item)))];
}

/** The first `most` charts of the sections. */
export function firstCharts(sections: readonly Section[], most: number): Section[] {
  const shownSections: Section[] = [];
  let left = most;
  for (const section of sections) {
    if (left <= 0) break;
    shownSections.push({ ...section, charts: section.charts.slice(0, left) });
    left -= section.charts.length;
  }
  return shownSections;
}

/** The names that contain every word, in any case. */
export function matching(names: readonly string[], words: string): string[] {
  const terms = words.toLowerCase().split(/\s+/).filter(Boolean);
  return names.filter((name) => terms.every((word) => name.toLowerCase().includes(word)));
}
