// The order of what a live page shows: what is new comes last, so that nothing moves.

/** Things in the order in which they were shown before; those that are new come last. */
export function inKeptOrder<T>(before: readonly T[], now: readonly T[], idOf: (item: T) => string): T[] {
  const byId = new Map(now.map((item) => [idOf(item), item]));
  const ids = new Set(before.map(idOf));
  return [...before.flatMap((item) => byId.get(idOf(item)) ?? []), ...now.filter((item) => !ids.has(idOf(item)))];
}
