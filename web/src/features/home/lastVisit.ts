// When the user was here last, in this browser: what happened since then is news.

import { storageKey } from '../../base/address';

/** A visit ends when nothing was requested for this long. */
export const VISIT_MS = 30 * 60_000;
/** What is news at a first visit. */
export const FIRST_MS = 24 * 3_600_000;

interface Visits {
  /** The end of the previous visit. */
  previous: number;
  /** When this visit was last seen to go on. */
  current: number;
}

/** The visits after being seen `now`. */
export function visited(visits: Visits | null, now: number): Visits {
  if (visits === null || visits.current > now + VISIT_MS) return { previous: now - FIRST_MS, current: now };
  return { previous: now - visits.current > VISIT_MS ? visits.current : visits.previous, current: now };
}

const keyOf = (user: string): string => storageKey(`runvitals.visits${user && `.${user}`}`);

/** The end of the previous visit of a user ("" without accounts); notes that this one goes on. */
export function lastVisit(user: string, now: number): number {
  const visits = visited(read(keyOf(user)), now);
  localStorage.setItem(keyOf(user), JSON.stringify(visits));
  return visits.previous;
}

function read(key: string): Visits | null {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(key) ?? 'null');
    if (stored === null || typeof stored !== 'object') return null;
    const { previous, current } = stored as Partial<Visits>;
    return typeof previous === 'number' && typeof current === 'number' ? { previous, current } : null;
  } catch {
    return null; // not what this page wrote
  }
}
