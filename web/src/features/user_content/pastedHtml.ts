// Cleans HTML that is pasted from Word, Google Docs, sheets and web pages, so that an editor finds in it what Markdown has.

/** What does not come with a text. */
const DROPPED = 'script, style, title, meta, link, xml, iframe, object, embed, svg, template, noscript, head > *';
const BLOCKS = 'p, div, h1, h2, h3, h4, h5, h6, li, blockquote, pre';
const INLINE = 'span, font, b, strong, i, em, u, a, sub, sup, small, big, code';
const HIDDEN = /display\s*:\s*none|visibility\s*:\s*hidden|mso-hide\s*:\s*all/i;
const BOLD = /(?:^|[;\s])font-weight\s*:\s*(bold|[6-9]00)/i;
const NOT_BOLD = /(?:^|[;\s])font-weight\s*:\s*(normal|[1-5]00)/i;
const ITALIC = /(?:^|[;\s])font-style\s*:\s*(italic|oblique)/i;
const STRUCK = /(?:^|[;\s])text-decoration[^;:]*:\s*[^;]*line-through/i;
/** A paragraph of Word that is an item of a list: its list and level. */
const WORD_ITEM = /mso-list\s*:\s*(l\d+)\s+level(\d+)/i;
const NUMBER = /^\s*\(?(\d{1,9}|[a-z]|[ivxlc]+)[.)]/i;
const IMAGE = /^data:(image\/(?:png|jpeg|gif|webp));base64,/i;
const MAX_CELLS = 10_000;

/** The same text with lists, tables and marks as elements, and without what cannot be shown. */
export function cleanedHtml(html: string): string {
  if (html.includes('data-pm-slice')) return html; // copied from an editor
  const { body } = parsed(html);
  for (const element of body.querySelectorAll(DROPPED)) element.remove();
  removeComments(body);
  for (const element of body.querySelectorAll('[data-style]')) if (HIDDEN.test(styleOf(element))) element.remove();
  listWordItems(body);
  for (const element of body.querySelectorAll(INLINE)) markByStyle(element);
  for (const element of body.querySelectorAll('s, strike')) renamed(element, 'del');
  for (const element of body.querySelectorAll('p.MsoTitle')) renamed(element, 'h1');
  for (const element of body.querySelectorAll('p.MsoQuote, p.MsoIntenseQuote')) wrapInside(renamed(element, 'blockquote'), 'p');
  for (const link of body.querySelectorAll('a[href]')) if (!/^(https?:|mailto:)/i.test(link.getAttribute('href')!)) unwrap(link);
  for (const image of body.querySelectorAll('img')) if (!/^https?:/i.test(image.getAttribute('src') ?? '')) image.remove();
  for (const box of body.querySelectorAll('li input[type=checkbox]')) markTask(box);
  for (const code of body.querySelectorAll('pre')) nameLanguage(code);
  // The innermost first.
  for (const table of [...body.querySelectorAll('table')].reverse()) straighten(table);
  spaces(body);
  for (const paragraph of body.querySelectorAll('p')) if (!paragraph.textContent.trim() && !paragraph.querySelector('img, br')) paragraph.remove();
  return body.innerHTML;
}

/** Whether there is more than one picture: then pictures of the whole beside it are not what is meant. */
export const hasText = (html: string): boolean => {
  const { body } = parsed(html);
  for (const element of body.querySelectorAll(DROPPED)) element.remove();
  return body.textContent.trim() !== '' || body.querySelector('table') !== null;
};

/** The pictures that a text brings along, and how many it only names: files of the computer it was written on. */
export function picturesIn(html: string): { files: File[]; missing: number } {
  if (html.includes('data-pm-slice')) return { files: [], missing: 0 };
  const sources = [...parsed(html).body.querySelectorAll('img')].map((image) => image.getAttribute('src') ?? '');
  const files = sources.flatMap((source, index) => {
    const type = IMAGE.exec(source)?.[1]?.toLowerCase();
    const bytes = type && decoded(source.slice(source.indexOf(',') + 1));
    return bytes ? [new File([bytes], `pasted ${index + 1}`, { type })] : [];
  });
  return { files, missing: sources.filter((source) => !/^(https?|data):/i.test(source)).length };
}

function decoded(base64: string): Uint8Array<ArrayBuffer> | null {
  try {
    return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  } catch {
    return null; // no picture
  }
}

/** Styles and handlers become data: the page's policy forbids them also where nothing is shown. */
function parsed(html: string): Document {
  const inert = html.replace(/<style[^<>]*>[^]*?<\/style\s*>/gi, '').replace(/<[a-z][^<>]*>/gi, (tag) => tag.replace(/\sstyle\s*=/gi, ' data-style=').replace(/\son[a-z]+\s*=/gi, ' data-on='));
  return new DOMParser().parseFromString(inert, 'text/html');
}

const styleOf = (element: Element): string => element.getAttribute('data-style') ?? '';

function removeComments(body: HTMLElement): void {
  const walker = body.ownerDocument.createTreeWalker(body, NodeFilter.SHOW_COMMENT);
  const comments: Node[] = [];
  while (walker.nextNode()) comments.push(walker.currentNode);
  for (const comment of comments) comment.parentNode!.removeChild(comment);
}

function unwrap(element: Element): void {
  element.replaceWith(...element.childNodes);
}

function renamed(element: Element, name: string): Element {
  const other = element.ownerDocument.createElement(name);
  other.append(...element.childNodes);
  element.replaceWith(other);
  return other;
}

function wrapInside(element: Element, name: string): void {
  const inner = element.ownerDocument.createElement(name);
  inner.append(...element.childNodes);
  element.append(inner);
}

/** Bold, italic and struck text has elements, and `<b>` that is not bold has none. */
function markByStyle(element: Element): void {
  const style = styleOf(element);
  if (/^(B|STRONG)$/.test(element.tagName) && NOT_BOLD.test(style)) return unwrap(element);
  if (!style || !element.textContent.trim()) return;
  if (BOLD.test(style)) wrapInside(element, 'strong');
  if (ITALIC.test(style)) wrapInside(element, 'em');
  if (STRUCK.test(style)) wrapInside(element, 'del');
}

function markTask(box: Element): void {
  const item = box.closest('li')!;
  item.setAttribute('data-item-type', 'task');
  item.setAttribute('data-checked', String(box.hasAttribute('checked')));
  box.remove();
}

function nameLanguage(pre: Element): void {
  const language = /(?:^|\s)(?:language|lang|highlight-source)-([\w+#.-]{1,40})/.exec([pre, ...pre.querySelectorAll('code')].map((element) => element.className).join(' '))?.[1];
  if (language) pre.setAttribute('data-language', language);
}

// Lists of Word, which are paragraphs with a mark before their text

function listWordItems(body: HTMLElement): void {
  let lists: { level: number; id: string; list: HTMLElement }[] = [];
  let end: Element | null = null;
  for (const paragraph of body.querySelectorAll('p, h1, h2, h3, h4, h5, h6')) {
    const [, id, depth] = WORD_ITEM.exec(styleOf(paragraph)) ?? [];
    if (id === undefined || depth === undefined || paragraph.closest('li')) continue;
    if (!end || paragraph.previousElementSibling !== end) lists = [];
    const level = Number(depth);
    const mark = [...paragraph.querySelectorAll('[data-style]')].find((element) => /mso-list\s*:\s*ignore/i.test(styleOf(element)));
    const number = NUMBER.exec(mark?.textContent ?? '')?.[1];
    mark?.remove();
    const item = body.ownerDocument.createElement('li');
    lists = lists.filter((list) => list.level < level || (list.level === level && list.id === id));
    if (lists.at(-1)?.level !== level) {
      const list = body.ownerDocument.createElement(number === undefined ? 'ul' : 'ol');
      if (Number(number) > 1) list.setAttribute('start', number!);
      const outer = lists.at(-1)?.list.lastElementChild;
      if (outer) outer.append(list);
      else paragraph.before(list);
      lists.push({ level, id, list });
    }
    lists.at(-1)!.list.append(item);
    end = lists[0]!.list;
    const text = renamed(paragraph, 'p');
    item.append(text);
  }
}

// Tables, whose cells are one line each and cover one place

function straighten(table: HTMLTableElement): void {
  const rows = [...table.rows].filter((row) => row.closest('table') === table);
  const cells = rows.flatMap((row) => [...row.cells]);
  if (cells.length <= 1) {
    table.replaceWith(...(cells[0]?.childNodes ?? [])); // it only placed its text
    return;
  }
  for (const cell of cells) inOneLine(cell);
  const grid: (HTMLTableCellElement | null)[][] = rows.map(() => []);
  let left = MAX_CELLS;
  rows.forEach((row, r) => {
    for (const cell of row.cells) {
      let column = 0;
      while (grid[r]![column] !== undefined) column++;
      for (let down = 0; down < Math.min(cell.rowSpan || 1, rows.length - r); down++)
        for (let right = 0; right < cell.colSpan; right++) if (left-- > 0) grid[r + down]![column + right] = down + right === 0 ? cell : null;
    }
  });
  const width = Math.max(...grid.map((row) => row.length));
  const straight = table.ownerDocument.createElement('table');
  grid.forEach((row, r) => {
    const line = straight.insertRow();
    for (let column = 0; column < width; column++) {
      const cell = table.ownerDocument.createElement(r === 0 ? 'th' : 'td');
      cell.append(...(row[column]?.childNodes ?? []));
      line.append(cell);
    }
  });
  table.replaceWith(straight);
}

/** Paragraphs and items in a cell as lines of one. */
function inOneLine(cell: HTMLTableCellElement): void {
  for (const block of [...cell.querySelectorAll(BLOCKS)].reverse()) {
    if (block.textContent.trim() && hasBefore(block, cell)) block.before(cell.ownerDocument.createElement('br'));
    unwrap(block);
  }
  for (const list of cell.querySelectorAll('ul, ol, dl, table, tbody, tr, td, th')) unwrap(list);
}

/** Whether a cell has text before an element. */
function hasBefore(element: Element, cell: Element): boolean {
  const range = cell.ownerDocument.createRange();
  range.setStart(cell, 0);
  range.setEndBefore(element);
  return range.toString().trim() !== '';
}

function spaces(body: HTMLElement): void {
  const walker = body.ownerDocument.createTreeWalker(body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode as Text;
    if (text.data.includes('\u00a0') && !text.parentElement?.closest('pre')) text.data = text.data.replaceAll('\u00a0', ' ');
  }
}
