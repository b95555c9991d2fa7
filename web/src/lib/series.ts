// The list of a run's series where it is longer than one answer of the server.

import type { SeriesInfo } from './api';
import type { Section } from './layout';
import { seriesId } from './points';

/** Series in one answer of the server; there may be more when an answer has so many. */
export const SERIES_PAGE = 10_000;
/** Charts on show at first, and how many more each time that more are wanted: each is an element to lay out. */
export const CHARTS_SHOWN = 200;
/** The server's limit for a glob is 512 characters. */
const MOST_LETTERS = 100;

/** A glob for keys with the longest of some words, in whatever case: the server's globs distinguish it. */
export function keyGlob(words: string): string | null {
  const longest = words.split(/\s+/).reduce((best, word) => (word.length > best.length ? word : best), '');
  if (longest === '') return null;
  return `*${[...longest].slice(0, MOST_LETTERS).map(anyCase).join('')}*`;
}

function anyCase(letter: string): string {
  const [lower, upper] = [letter.toLowerCase(), letter.toUpperCase()];
  if (lower !== upper && lower.length === 1 && upper.length === 1) return `[${lower}${upper}]`;
  return '*?['.includes(letter) ? `[${letter}]` : letter;
}

/** A list with those of another that it lacks. */
export function merged(series: readonly SeriesInfo[], more: readonly SeriesInfo[]): SeriesInfo[] {
  const known = new Set(series.map(seriesId));
  return [...series, ...more.filter((one) => !known.has(seriesId(one)))];
}

/** The first charts of all sections, as many as `most`. */
export function firstCharts(sections: readonly Section[], most: number): Section[] {
  const found: Section[] = [];
  let left = most;
  for (const section of sections) {
    if (left <= 0) break;
    found.push({ ...section, charts: section.charts.slice(0, left) });
    left -= section.charts.length;
  }
  return found;
}
