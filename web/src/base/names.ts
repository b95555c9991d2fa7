// Names of users and teams: what they may be, and how a name is drawn where there is no picture.

/** Lower-case letters and digits, with single hyphens or underscores inside. */
const NAME = /^[a-z0-9](?:[a-z0-9]|[-_](?=[a-z0-9])){0,63}$/;

export const isEntityName = (text: string): boolean => NAME.test(text);

/** What is wrong with the name of a user or team; empty if nothing. */
export function nameProblem(text: string): string {
  if (text === '' || isEntityName(text)) return '';
  return 'Letters a to z, digits, and single hyphens or underscores between them; at most 64.';
}

/** `AL` of `Ada Lovelace`, `N` of `node`. */
export function initials(text: string): string {
  const words = text.trim().split(/[\s._-]+/u).filter(Boolean);
  const letters = (words.length > 1 ? [words[0]!, words[words.length - 1]!] : words).map((word) => [...word][0]!);
  return letters.join('').toUpperCase();
}

/** One of twelve colours, always the same for a name. */
export function colourOf(name: string): string {
  let sum = 0;
  for (const letter of name) sum = (sum * 31 + letter.codePointAt(0)!) % 3600;
  return `hsl(${(sum % 12) * 30} 45% 38%)`;
}

/** The beginning and the end of a text, so many letters together: a third of them are its beginning. */
export function withoutMiddle(text: string, kept: number): string {
  if (kept >= text.length) return text;
  const front = Math.floor(kept / 3);
  return `${text.slice(0, front)}…${text.slice(text.length - (kept - front))}`;
}
