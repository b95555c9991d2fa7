import { beforeEach, describe, expect, it, vi } from 'vitest';
import { FIRST_MS, VISIT_MS, lastVisit, visited } from './lastVisit';

const NOW = 1_800_000_000_000;

describe('the previous visit', () => {
  it('is a day ago at first', () => {
    expect(visited(null, NOW)).toEqual({ previous: NOW - FIRST_MS, current: NOW });
  });

  it('stays the same while a visit goes on', () => {
    const first = visited({ previous: NOW - 10 * VISIT_MS, current: NOW - 1000 }, NOW);
    expect(visited(first, NOW + VISIT_MS - 1)).toEqual({ previous: NOW - 10 * VISIT_MS, current: NOW + VISIT_MS - 1 });
  });

  it('is where the last one ended', () => {
    expect(visited({ previous: 1, current: NOW }, NOW + VISIT_MS + 1).previous).toBe(NOW);
  });

  it('begins again when the clock was set back', () => {
    expect(visited({ previous: 1, current: NOW + 2 * VISIT_MS }, NOW).previous).toBe(NOW - FIRST_MS);
  });

  describe('in this browser', () => {
    const kept = new Map<string, string>();
    beforeEach(() => {
      kept.clear();
      vi.stubGlobal('localStorage', { getItem: (key: string) => kept.get(key) ?? null, setItem: (key: string, text: string) => kept.set(key, text) });
    });

    it('is kept by user', () => {
      lastVisit('ada', NOW);
      expect(lastVisit('ada', NOW + 2 * VISIT_MS)).toBe(NOW);
      expect(lastVisit('bob', NOW + 2 * VISIT_MS)).toBe(NOW + 2 * VISIT_MS - FIRST_MS);
    });

    it.each(['no JSON', '7', '{"previous": "x"}'])('survives %s', (text) => {
      kept.set('runvitals.visits', text);
      expect(lastVisit('', NOW)).toBe(NOW - FIRST_MS);
    });
  });
});
