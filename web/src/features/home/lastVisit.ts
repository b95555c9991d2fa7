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
export function visited(known: Visits | null, now: number): Visits {
  if (known === null || known.current > now + VISIT_MS) return { previous: now - FIRST_MS, current: now };
  return { previous: now - known.current > VISIT_MS ? known.current : known.previous, current: now };
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
    const found: unknown = JSON.parse(localStorage.getItem(key) ?? 'null');
    if (found === null || typeof found !== 'object') return null;
    const { previous, current } = found as Partial<Visits>;
    return typeof previous === 'number' && typeof current === 'number' ? { previous, current } : null;
  } catch {
    return null; // not what this page wrote
  }
}
