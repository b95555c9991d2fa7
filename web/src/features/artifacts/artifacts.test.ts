import { describe, expect, it, vi } from 'vitest';

vi.stubGlobal('window', { location: { pathname: '/', search: '', hash: '' }, addEventListener: () => undefined });
const { artifactsPath, contentHref, daysOf, secondsOf, ttlText } = await import('./artifacts');

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

describe('the time to live of an artifact', () => {
  it('is typed in days and sent in seconds', () => {
    expect([daysOf(null), daysOf(86_400), daysOf(43_200), daysOf(100)]).toEqual(['', '1', '0.5', '0.001157']);
    expect([secondsOf(''), secondsOf(' 30 '), secondsOf('0.5'), secondsOf(null), secondsOf(2)]).toEqual([null, 2_592_000, 43_200, null, 172_800]);
  });

  it('is said in words', () => {
    expect(ttlText(null)).toBe('Versions are kept until they are deleted');
    expect(ttlText(86_400)).toBe('Versions are deleted 1 day after they were logged, unless they are linked');
    expect(ttlText(7 * 86_400)).toContain('deleted 7 days after');
  });
});
