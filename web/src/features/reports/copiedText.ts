// A new report of what was copied elsewhere: Markdown, plain text, or rows of a sheet.

const HEADING = /^#\s+(.+?)\s*#*\s*$/;
const MAX_TITLE = 256;

/** The title and the Markdown of a report; a first heading is its title. */
export function reportOfText(copied: string): { title: string; markdown: string } {
  // A last cell may be empty: its tab stays.
  const text = copied.replace(/\r\n?/g, '\n').replace(/^\s+|[ \n]+$/g, '');
  const [first = '', ...rest] = text.split('\n');
  const title = HEADING.exec(first)?.[1];
  if (title) return { title: title.slice(0, MAX_TITLE), markdown: rest.join('\n').trim() };
  return { title: 'Untitled report', markdown: tableOf(text) ?? text };
}

/** Rows of cells with tabs between them as a table; null: it is something else. */
function tableOf(text: string): string | null {
  const rows = text.split('\n').map((line) => line.split('\t').map((cell) => cell.trim().replaceAll('|', '\\|')));
  const columns = rows[0]!.length;
  if (columns < 2 || rows.some((row) => row.length !== columns)) return null;
  const lines = rows.map((row) => `| ${row.join(' | ')} |`);
  return [lines[0], `|${' - |'.repeat(columns)}`, ...lines.slice(1)].join('\n');
}
