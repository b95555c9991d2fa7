import { describe, expect, it } from 'vitest';

// base/ imports nothing of chart/, and neither anything of a feature: whoever reads them needs no feature.
const SOURCES = import.meta.glob<string>(['./{base,chart}/**/*.{ts,svelte}', '!./**/*.test.ts'], { eager: true, query: '?raw', import: 'default' });
const ABOVE: Record<string, RegExp> = { base: /from '[./]*\/(chart|features)\/[^']*'/g, chart: /from '[./]*\/features\/[^']*'/g };

describe('what all features share', () => {
  it.each(Object.keys(ABOVE))('%s imports nothing that is built on it', (layer) => {
    const upwards = Object.entries(SOURCES)
      .filter(([path]) => path.startsWith(`./${layer}/`))
      .flatMap(([path, text]) => (text.match(ABOVE[layer]!) ?? []).map((text) => `${path}: ${text}`));
    expect(upwards).toEqual([]);
  });
});
