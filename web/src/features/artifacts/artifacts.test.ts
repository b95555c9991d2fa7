import { describe, expect, it, vi } from 'vitest';

vi.stubGlobal('window', { location: { pathname: '/', search: '', hash: '' }, addEventListener: () => undefined });
const { artifactsPath, contentHref } = await import('./artifacts');

describe('the addresses of artifacts', () => {
  it('have the team where there are accounts', () => {
    expect(artifactsPath('vision', 'a b', 'x%y', 'v3')).toBe('entities/vision/projects/a%20b/artifacts/x%25y/v3');
    expect(artifactsPath(null, 'digits')).toBe('projects/digits/artifacts');
  });

  it('name the path of a file and what to save it as', () => {
    const artifact = { entity: null, project: 'digits', name: 'mnist', version: 3 } as Parameters<typeof contentHref>[0];
    expect(contentHref(artifact, 'in/a b.txt')).toBe('/api/v1/projects/digits/artifacts/mnist/v3/content?path=in%2Fa+b.txt&download=a+b.txt');
  });
});
