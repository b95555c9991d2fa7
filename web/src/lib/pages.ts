// The pages whose code is loaded when they are shown. The entry of the page begins with the one that its address is of, so it
// imports nothing else.

export const home = () => import('../pages/HomePage.svelte');
export const run = () => import('../pages/RunPage.svelte');
export const runs = () => import('../pages/RunsPage.svelte');
export const workspace = () => import('../pages/WorkspacePage.svelte');
export const shared = () => import('../pages/SharedPage.svelte');

const FIRST: readonly (readonly [RegExp, () => Promise<unknown>])[] = [
  [/^\/$/, home],
  [/^\/runs$/, runs],
  [/^\/projects\/[^/]+$/, workspace],
  [/^\/-\/shared/, shared],
  [/^(\/[^/]+\/[^/]+)?\/runs\/[^/]+/, run],
];

/** What loads the page of an address; null for the others. */
export const pageOf = (path: string): (() => Promise<unknown>) | null => FIRST.find(([pattern]) => pattern.test(path))?.[1] ?? null;
