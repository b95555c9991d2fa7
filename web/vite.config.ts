import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig, type HtmlTagDescriptor, type Plugin } from 'vite';

// `server/http/page.py` serves this folder: everything under assets/ is named after its content and kept by browsers.
const OUT = '../src/runvitals/server/static';
/** Which the entry imports. */
const PAGE = decodeURIComponent(new URL('src/app.ts', import.meta.url).pathname);
/** What the entry needs, which must not wait for the page. */
const EARLY = /\/src\/(base\/(address|early)|pages)\.ts$|preload-helper|rolldown[\\/]runtime/;
const source = (path: string): string => decodeURIComponent(new URL(`src/${path}`, import.meta.url).pathname);
/** The pages that most users open first. What two of them need is loaded with the page. */
const FIRST_PAGES = ['features/home/HomePage.svelte', 'features/runs/RunPage.svelte', 'features/runs/RunsPage.svelte'].map(source);
/** What several pages share: a file each. */
const SHARED: [string, string][] = [
  ['charts', source('chart/Chart.svelte')],
  ['runs', source('features/runs/list/RunsTable.svelte')],
];

/** The entry imports the page after it requested data. With these links, browsers load it from the beginning. */
const preloadedPage: Plugin = {
  name: 'preloaded-page',
  transformIndexHtml: {
    order: 'post',
    handler(_html, { bundle, chunk }) {
      const tags: HtmlTagDescriptor[] = [];
      for (const name of chunk?.dynamicImports ?? []) {
        const page = bundle?.[name];
        if (page?.type !== 'chunk' || !page.moduleIds.includes(PAGE)) continue;
        for (const file of new Set([...page.imports, name])) {
          if (file === chunk?.fileName || chunk?.imports.includes(file)) continue;
          const loaded = bundle?.[file];
          tags.push({ tag: 'link', attrs: { rel: 'modulepreload', crossorigin: true, href: `./${file}` }, injectTo: 'head' });
          for (const css of (loaded?.type === 'chunk' && loaded.viteMetadata?.importedCss) || []) {
            tags.push({ tag: 'link', attrs: { rel: 'stylesheet', crossorigin: true, href: `./${css}` }, injectTo: 'head' });
          }
        }
      }
      return tags;
    },
  },
};

/** The modules that a module needs, without those that are loaded later. */
function needed(start: string, importsOf: (id: string) => readonly string[]): Set<string> {
  const found = new Set([start]);
  for (const id of found) for (const other of importsOf(id)) found.add(other);
  return found;
}

/** The modules of each file, unless a file before it has them. */
function filesOf(importsOf: (id: string) => readonly string[]): [string, Set<string>][] {
  const first = FIRST_PAGES.map((page) => needed(page, importsOf));
  const common = [...new Set(first.flatMap((modules) => [...modules]))].filter((id) => first.filter((modules) => modules.has(id)).length > 1);
  const [charts, runs] = SHARED.map(([name, start]): [string, Set<string>] => [name, needed(start, importsOf)]);
  return [['page', needed(PAGE, importsOf)], charts!, ['page', new Set(common)], runs!];
}

let files: [string, Set<string>][] | null = null;

export default defineConfig({
  base: './', // the server may be below a path of another one: `page.py` completes these addresses
  plugins: [svelte(), preloadedPage],
  build: {
    outDir: OUT,
    emptyOutDir: true,
    assetsInlineLimit: 0, // the Content-Security-Policy allows files of our own only
    modulePreload: { polyfill: false },
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            { name: 'early', test: EARLY, priority: 1 },
            {
              // One file instead of a dozen that later parts share with the first view: a browser has six connections.
              debugName: 'page',
              name(id, modules) {
                const importsOf = (from: string): readonly string[] => modules.getModuleInfo(from)?.importedIds ?? [];
                files ??= filesOf(importsOf);
                return files.find(([, modules]) => modules.has(id))?.[0] ?? null;
              },
            },
          ],
        },
      },
    },
  },
  server: { proxy: { '/api': 'http://127.0.0.1:8900' } },
});
