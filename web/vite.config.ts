import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig, type HtmlTagDescriptor, type Plugin } from 'vite';

// `server/page.py` serves this folder: everything under assets/ is named after its content and kept by browsers.
const OUT = '../src/runvitals/server/static';
/** Which the entry imports. */
const PAGE = decodeURIComponent(new URL('src/app.ts', import.meta.url).pathname);
/** What the entry needs, which must not wait for the page. */
const EARLY = /\/src\/lib\/early\.ts$|preload-helper|rolldown[\\/]runtime/;

/** The entry imports the page after it requested data. With these links, browsers load it from the beginning. */
const preloadedPage: Plugin = {
  name: 'preloaded-page',
  transformIndexHtml: {
    order: 'post',
    handler(_html, { bundle, chunk }) {
      const tags: HtmlTagDescriptor[] = [];
      for (const name of chunk?.dynamicImports ?? []) {
        const page = bundle?.[name];
        if (page?.type !== 'chunk') continue;
        for (const file of new Set([...page.imports, name])) {
          if (file === chunk?.fileName || chunk?.imports.includes(file)) continue;
          const loaded = bundle?.[file];
          tags.push({ tag: 'link', attrs: { rel: 'modulepreload', crossorigin: true, href: `/${file}` }, injectTo: 'head' });
          for (const css of (loaded?.type === 'chunk' && loaded.viteMetadata?.importedCss) || []) {
            tags.push({ tag: 'link', attrs: { rel: 'stylesheet', crossorigin: true, href: `/${css}` }, injectTo: 'head' });
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

let firstView: Set<string> | null = null;

export default defineConfig({
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
                firstView ??= needed(PAGE, (from) => modules.getModuleInfo(from)?.importedIds ?? []);
                return firstView.has(id) ? 'page' : null;
              },
            },
          ],
        },
      },
    },
  },
  server: { proxy: { '/api': 'http://127.0.0.1:8900' } },
});
