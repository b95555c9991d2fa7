// Keys of list items for `{#each}`, from what the items are.

/**
 * Items with keys that are surely different, as Svelte requires: a page with two equal keys stops working.
 *
 * What identifies an item comes from machines and users, so that two of them may have the same; the second then
 * gets a number.
 */
export function identified<Item>(items: readonly Item[], identify: (item: Item) => string): { key: string; item: Item }[] {
  const times = new Map<string, number>();
  return items.map((item) => {
    const identity = identify(item);
    const earlier = times.get(identity) ?? 0;
    times.set(identity, earlier + 1);
    return { key: earlier === 0 ? identity : `${identity}\0${earlier}`, item };
  });
}
