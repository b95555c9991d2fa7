// Two people change a report: what each changed, block by block, as the server merges it too.

import { isSame, type Block } from './reports';

/** A block that both changed. null: it was removed. */
export interface BlockConflict {
  id: string;
  current: Block | null;
  yours: Block | null;
}

/** Which of the two a conflict becomes. */
export type Resolution = 'mine' | 'theirs' | 'both';

const byId = (blocks: readonly Block[]): Map<string, Block> => new Map(blocks.map((block) => [block.id, block]));

/**
 * The blocks with the changes of both, in the order of mine; what only theirs has comes after the same neighbour.
 *
 * `resolved`: what blocks become that both changed; `fresh`: a new id, for mine where both stay.
 */
export function rebased(base: readonly Block[], theirs: readonly Block[], mine: readonly Block[], resolved: (id: string) => Resolution, fresh: () => string): Block[] {
  const [before, now, own] = [byId(base), byId(theirs), byId(mine)];
  const order = mine.map(({ id }) => id);
  theirs.forEach(({ id }, index) => {
    if (own.has(id)) return;
    const previous = index === 0 ? -1 : order.indexOf(theirs[index - 1]!.id);
    order.splice(previous + 1, 0, id);
  });
  return order.flatMap((id): Block[] => {
    const [was, their, our] = [before.get(id), now.get(id), own.get(id)];
    if (isSame(our, was)) return their ? [their] : [];
    if (isSame(their, was) || isSame(their, our)) return our ? [our] : [];
    const choice = resolved(id);
    if (choice === 'both' && their && our) return [their, { ...our, id: fresh() }];
    const chosen = choice === 'theirs' ? their : (our ?? (choice === 'both' ? their : undefined));
    return chosen ? [chosen] : [];
  });
}
