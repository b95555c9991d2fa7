import { describe, expect, it } from 'vitest';
import { timeZones } from './choices';

const zones = async (text: string): Promise<string[]> => (await timeZones(text, new AbortController().signal)).map(({ value }) => value);

describe('time zones', () => {
  it('are found by words of their name', async () => {
    expect(await zones('new york')).toEqual(['America/New_York']);
    expect(await zones('Europe/Berlin')).toEqual(['Europe/Berlin']);
    expect(await zones('nowhere')).toEqual([]);
  });

  it('are found by their offset', async () => {
    expect(await zones('+05:45')).toEqual([expect.stringMatching(/^Asia\/Kath?mandu$/)]);
  });

  it('begin with UTC, and are few at a time', async () => {
    const all = await zones('');
    expect(all[0]).toBe('UTC');
    expect(all.length).toBe(20);
  });
});
