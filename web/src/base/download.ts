// Files that the page makes.

/** A file name from a title: letters, digits, dots and dashes. */
export const fileName = (title: string, suffix: string): string =>
  `${title.normalize('NFKC').replace(/[^\p{L}\p{N}.]+/gu, '-').replace(/^[-.]+|[-.]+$/g, '').slice(0, 100) || 'runvitals'}.${suffix}`;

const KEPT_MS = 60_000;

/** Have the browser save a file. */
export function saveFile(name: string, content: Blob): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.target = '_self'; // not a view of this page
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), KEPT_MS);
}
