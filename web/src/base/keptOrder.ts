// The order of what a live page shows: what is new comes last, so that nothing moves.

/** Things in the order in which they were shown before; those that are new come last. */
export function inKeptOrder<T>(before: readonly T[], now: readonly T[], idOf: (one: T) => string): T[] {
  const byId = new Map(now.map((one) => [idOf(one), one]));
  const known = new Set(before.map(idOf));
  return [...before.flatMap((one) => byId.get(idOf(one)) ?? []), ...now.filter((one) => !known.has(idOf(one)))];
}
