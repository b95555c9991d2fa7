// The findings about a run as marks on its charts: each where a series is drawn that decided it.

import { getContext, setContext } from 'svelte';
import type { Finding } from '../../base/wire';
import type { Mark } from '../../chart/chartModel';
import type { LoggedPoints } from '../../chart/loggedPoints';

/** A series by its key, or those of all devices by `*` for them; on a host, which values that a training logged have none of. */
interface Series {
  key: string;
  host?: string;
}

/** The findings that a chart of these series marks. */
export type MarksOf = (series: readonly Series[]) => Mark[];

const KEY = Symbol('findings on charts');

/** Mark the findings on all charts below. */
export const provideMarks = (marks: MarksOf): void => void setContext(KEY, marks);
export const marksOfCharts = (): MarksOf => getContext<MarksOf | undefined>(KEY) ?? (() => []);

/** Whether a key is this one, or that of a device. */
function isOf(pattern: string, key: string): boolean {
  const [before, after] = pattern.split('*', 2) as [string, string?];
  return after === undefined ? pattern === key : key.length > before.length + after.length && key.startsWith(before) && key.endsWith(after);
}

/** Information is no mark: it is in the card. */
export function marksOf(findings: readonly Finding[], series: readonly Series[], href: (finding: Finding) => string): Mark[] {
  const isDrawn = (key: string, host: string): boolean => series.some((item) => isOf(item.key, key) && (item.host === undefined || item.host === host));
  return findings.flatMap((finding): Mark[] => {
    const { severity, text, from_ms: min, to_ms, evidence } = finding;
    if (severity === 'info' || !evidence.some(({ key, host }) => isDrawn(key, host))) return [];
    return [{ min, max: to_ms ?? Infinity, level: severity, text, href: href(finding) }];
  });
}

/** Marks as they were at a time of the run. */
export const marksUntil = (marks: readonly Mark[], until: number | null): Mark[] =>
  until === null ? [...marks] : marks.filter(({ min }) => min <= until).map((mark) => ({ ...mark, max: Math.min(mark.max, until) }));

/** Where points are on an axis without time, and when they were logged. */
export interface Places {
  t: LoggedPoints['t'];
  at: readonly (number | null)[];
}

/** Marks on an axis without time: from the first to the last point that was logged while a finding held; to the end if it still does. */
export function marksAt(marks: readonly Mark[], lines: Iterable<Places>): Mark[] {
  const all = [...lines];
  return marks.flatMap((mark): Mark[] => {
    let [min, max] = [Infinity, -Infinity];
    for (const { t, at } of all) {
      t.forEach((time, i) => {
        const x = at[i];
        if (time === null || x === null || x === undefined || time < mark.min || time > mark.max) return;
        min = Math.min(min, x);
        max = Math.max(max, x);
      });
    }
    return max >= min ? [{ ...mark, min, max: Number.isFinite(mark.max) ? max : Infinity }] : [];
  });
}
