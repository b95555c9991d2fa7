import { describe, expect, it } from 'vitest';
import { compared, fieldText, fileHref, registryPath, usageOf } from './registry';

const registryId = { team: 'vision', registry: 'prod models' };

describe('paths', () => {
  it('encode each name', () => {
    expect(registryPath(registryId, 'collections', 'a/b')).toBe('teams/vision/registries/prod%20models/collections/a%2Fb');
    expect(fileHref(registryId, 'net', 3, 'data/a b.txt', true)).toBe('/api/v1/teams/vision/registries/prod%20models/collections/net/versions/3/files/data/a%20b.txt?download=a+b.txt');
  });
});

describe('how to use a version', () => {
  it('names an alias where there is one, and quotes what somebody else wrote', () => {
    const texts = usageOf(registryId, { collection: `it's "x"`, version: 3, aliases: ['latest', 'best'], mlflow_name: 'net' }, 'https://runs.example.org');
    expect(texts.map(({ title }) => title)).toEqual(['Python', 'Command', 'wandb', 'MLflow']);
    expect(texts[0]!.code).toContain(String.raw`.download("it's \"x\":best")`);
    expect(texts[1]!.code).toBe(String.raw`runvitals registry get 'vision/prod models/it'\''s "x":best'`);
    expect(texts[3]!.code).toContain('models:/net/3');
  });
});

describe('a comparison', () => {
  it('begins with what differs, by name, also in what is nested', () => {
    const rows = compared({ lr: 0.1, net: { depth: 5 }, a: 1 }, { lr: 0.2, net: { depth: 5 }, z: [1] });
    expect(rows).toEqual([
      { name: 'a', left: '1', right: '–', differs: true },
      { name: 'lr', left: '0.1', right: '0.2', differs: true },
      { name: 'z', left: '–', right: '[1]', differs: true },
      { name: 'net.depth', left: '5', right: '5', differs: false },
    ]);
  });
});

describe('fields of runs', () => {
  it.each([[undefined, '–'], [0.123456789, '0.12346'], ['adam', 'adam'], [12, '12']])('%s', (value, text) => expect(fieldText(value)).toBe(text));
});
