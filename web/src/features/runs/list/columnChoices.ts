// The columns that can be chosen.

import { BUILT_IN_COLUMNS } from './columns';
import { SYSTEM_STATISTICS } from './systemStatistics';
import { SPARKLINE } from './view';

export interface ColumnChoice {
  name: string;
  title: string;
  section: string;
  hint: string;
}

const of = (names: readonly string[], prefix: string, section: string): ColumnChoice[] =>
  names.filter((name) => name.startsWith(prefix)).map((name) => ({ name, title: name.slice(prefix.length), section, hint: '' }));

/** All columns, by section: `fields` are those of the runs, `shownColumns` may have some that no run has any more. */
export function columnChoices(fields: readonly string[], shownColumns: readonly string[]): ColumnChoice[] {
  const names = [...new Set([...fields, ...shownColumns])];
  const lines = new Set([...fields.filter((name) => name.startsWith('summary.')).map((name) => SPARKLINE + name.slice('summary.'.length)), ...shownColumns.filter((name) => name.startsWith(SPARKLINE))]);
  return [
    ...BUILT_IN_COLUMNS.filter(({ name }) => name !== 'name').map(({ name, title }) => ({ name, title, section: 'Run', hint: '' })),
    ...of(names, 'summary.', 'Summary'),
    ...of(names, 'config.', 'Configuration'),
    ...SYSTEM_STATISTICS.map(({ name, text, unit }) => ({ name, title: text, section: 'System', hint: unit })),
    ...of([...lines], SPARKLINE, 'Course of a metric'),
  ];
}
