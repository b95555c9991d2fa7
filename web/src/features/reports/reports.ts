// Reports: their addresses, and what pages make of their blocks.

import { newId } from '../../base/ids';
import type { ListedReport, ReportImage, ReportPanel, ReportPanels, ReportRunSet, Report as ReportSchema, ReportText } from '../../base/wire';

export type Block = ReportText | ReportImage | ReportPanels;
export type { ListedReport, ReportImage, ReportPanel, ReportPanels, ReportRunSet, ReportSchema, ReportText };

export const MAX_PANELS = 200;

/** The path of a report in the API, with what follows. */
export const reportPath = (id: number | string, rest = ''): string => `reports/${encodeURIComponent(id)}${rest}`;

/** A heading of a report. `depth`: from 0, by the headings that there are. */
export interface OutlineEntry {
  id: string;
  text: string;
  depth: number;
}

const HEADING = /^(#{1,6})\s+(.+?)\s*#*$/;
/** What marks text as bold, code and the like; links are their text. */
const LINK = /!?\[([^\]]*)\]\([^)]*\)/g;
const MARKS = /[*_`~]/g;

/** The headings of a report, in its order. */
export function outlineOf(blocks: readonly Block[]): OutlineEntry[] {
  const headings = blocks.flatMap((block) => {
    const match = block.kind === 'text' ? HEADING.exec(block.text.trim().split('\n')[0]!) : null;
    return match ? [{ id: block.id, text: match[2]!.replace(LINK, '$1').replace(MARKS, ''), level: match[1]!.length }] : [];
  });
  const levels = [...new Set(headings.map(({ level }) => level))].sort((a, b) => a - b);
  return headings.map(({ id, text, level }) => ({ id, text, depth: Math.min(2, levels.indexOf(level)) }));
}

/** Where a block is on the page. */
export const anchorOf = (block: string): string => `block-${block}`;

/** All runs of a project, which new panels show. */
export const newRunSet = (entity: string, project: string): ReportRunSet => ({
  id: newId(),
  name: '',
  entity,
  project,
  filter: '',
  group: [],
  sort: '',
  limit: 10,
  runs: null,
  hidden: [],
  colors: {},
});

/** Whether two JSON values are the same, in whatever order their fields are. */
export const isSame = (a: unknown, b: unknown): boolean => canonical(a) === canonical(b);

const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, part: unknown) =>
    part !== null && typeof part === 'object' && !Array.isArray(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part,
  );
