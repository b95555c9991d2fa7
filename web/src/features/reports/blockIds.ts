// The ids of blocks while their document is edited: blocks have them in reports, nodes of an editor do not.

import { newId } from '../../base/ids';

/**
 * The ids of the nodes of a changed document.
 *
 * A node that is still there keeps its id, wherever it is. Of the others, each takes that of a node that has gone, in
 * their order between the same neighbours; what is left is new.
 */
export function idsAfter<Node>(before: readonly Node[], ids: readonly string[], after: readonly Node[], fresh: (node: Node) => string = newId): string[] {
  const indexesOf = new Map<Node, number[]>();
  before.forEach((node, at) => indexesOf.set(node, [...(indexesOf.get(node) ?? []), at]));
  const kept = after.map((node) => indexesOf.get(node)?.shift() ?? -1);
  const used = new Set(kept);
  const blockIds: string[] = [];
  let previous = -1;
  for (let index = 0; index < after.length; index++) {
    let earlier = kept[index]!;
    if (earlier < 0) {
      const end = kept.find((position, at) => at > index && position > previous) ?? before.length;
      earlier = before.findIndex((_, at) => at > previous && at < end && !used.has(at));
      used.add(earlier);
    }
    blockIds.push(earlier < 0 ? fresh(after[index]!) : ids[earlier]!);
    if (earlier >= 0) previous = earlier;
  }
  return blockIds;
}
