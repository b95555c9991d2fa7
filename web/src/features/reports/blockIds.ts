// The ids of blocks while their document is edited: blocks have them in reports, nodes of an editor do not.

import { newId } from '../../base/ids';

/**
 * The ids of the nodes of a changed document.
 *
 * A node that is still there keeps its id, wherever it is. Of the others, each takes that of a node that has gone, in
 * their order between the same neighbours; what is left is new.
 */
export function idsAfter<Node>(before: readonly Node[], ids: readonly string[], after: readonly Node[], fresh: (node: Node) => string = newId): string[] {
  const places = new Map<Node, number[]>();
  before.forEach((node, place) => places.set(node, [...(places.get(node) ?? []), place]));
  const kept = after.map((node) => places.get(node)?.shift() ?? -1);
  const used = new Set(kept);
  const found: string[] = [];
  let previous = -1;
  for (let index = 0; index < after.length; index++) {
    let place = kept[index]!;
    if (place < 0) {
      const end = kept.find((one, at) => at > index && one > previous) ?? before.length;
      place = before.findIndex((_, at) => at > previous && at < end && !used.has(at));
      used.add(place);
    }
    found.push(place < 0 ? fresh(after[index]!) : ids[place]!);
    if (place >= 0) previous = place;
  }
  return found;
}
