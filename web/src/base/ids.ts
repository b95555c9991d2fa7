// Random ids of what users make on a page: panels, sections, blocks and run sets.

const ID_LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789';

/** A new id, short enough for addresses: hidden and pinned series are named by that of their panel. */
export const newId = (): string => Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => ID_LETTERS[byte % ID_LETTERS.length]).join('');
