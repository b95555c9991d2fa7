import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

// `server/page.py` serves this folder: everything under assets/ is named after its content and kept by browsers.
const OUT = '../src/runvitals/server/static';

export default defineConfig({
  plugins: [svelte()],
  build: {
    outDir: OUT,
    emptyOutDir: true,
    assetsInlineLimit: 0, // the Content-Security-Policy allows files of our own only
    modulePreload: { polyfill: false },
  },
  server: { proxy: { '/api': 'http://127.0.0.1:8900' } },
});
