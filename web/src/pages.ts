// The pages whose code is loaded when they are shown. The entry of the page begins with the one that its address is of, so it
// imports nothing else.

export const home = () => import('./features/home/HomePage.svelte');
export const run = () => import('./features/runs/RunPage.svelte');
export const runs = () => import('./features/runs/RunsPage.svelte');
export const workspace = () => import('./features/workspace/WorkspacePage.svelte');
export const shared = () => import('./features/projects/SharedPage.svelte');

const FIRST: readonly (readonly [RegExp, () => Promise<unknown>])[] = [
  [/^\/$/, home],
  [/^\/runs$/, runs],
  [/^\/projects\/[^/]+$/, workspace],
  [/^\/-\/shared/, shared],
  [/^(\/[^/]+\/[^/]+)?\/runs\/[^/]+/, run],
];

/** What loads the page of an address; null for the others. */
export const pageOf = (path: string): (() => Promise<unknown>) | null => FIRST.find(([pattern]) => pattern.test(path))?.[1] ?? null;
