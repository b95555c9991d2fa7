// Where the server is in the browser's addresses: at their root, or below a path of another server.
//
// Everywhere in the code, a path begins at the server: `/runs/x`. What gives a path to the browser puts the path of the
// server before it: attributes of elements (by `ownAddresses.js`, for all of them), and the functions here.

/** The path below which this page is; empty at the root. The page loads its code from `assets` there. */
export const BELOW = /^(.*)\/assets\/[^/]+$/.exec(new URL(import.meta.url).pathname)?.[1] ?? '';

/** The address of a path of this server; anything else as it is, such as the address of another site. */
export const address = <T>(path: T, below = BELOW): T | string => (typeof path === 'string' && /^\/(?![/\\])/.test(path) ? below + path : path);

/** The links and images in HTML that the server made of Markdown. */
export const html = (text: string, below = BELOW): string =>
  below ? text.replace(TAG, (tag) => tag.replace(/(\s(?:href|src)=")(?=\/(?![/\\]))/g, (start) => start + below)) : text;

/** The beginning of an element, with its attributes, whose values may have `>` in them. */
const TAG = /<[a-z][^\s>]*(?:\s+[^\s=>]+(?:="[^"]*")?)*/g;

/** The path of this server in a path of the browser; null if that is of another server. */
export function pathIn(pathname: string, below = BELOW): string | null {
  if (below === '') return pathname;
  return pathname.startsWith(`${below}/`) ? pathname.slice(below.length) : null;
}

/** The path of the current view. */
export const currentPath = (): string => pathIn(window.location.pathname) ?? '/';

/** This server, as programs and other people address it. */
export const serverUrl = (): string => window.location.origin + BELOW;

/** A link of the server as it can be passed on. */
export const wholeUrl = (path: string): string => new URL(address(path), window.location.origin).href;

/** The name of what this browser keeps for this server: those below other paths of the same host share its storage. */
export const storageKey = (name: string, below = BELOW): string => (below ? `${name} ${below}` : name);

/** Request a path of the server. */
export const request = (path: string, how?: RequestInit): Promise<Response> => fetch(address(path), how);

/** Load another page. */
export const leave = (path: string): void => window.location.assign(address(path));
