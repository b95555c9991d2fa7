// Undoing what one has saved earlier, in another session or browser, without undoing what others wrote since.

import type { ReportEdit } from '../../base/wire';
import { isSame, type Block } from './reports';
import type { Working } from './savedReport.svelte';

/** The report without an edit; what somebody changed since stays. null: nothing of it is left to undo. */
export function undone(report: Working, edit: ReportEdit): Working | null {
  const blocks = new Map(report.blocks.map((block) => [block.id, block]));
  const ids = report.blocks.map(({ id }) => id);
  const order = edit.order;
  if (order) moveBack(ids, order.before, order.after);
  const changes = new Map(edit.blocks.map((change) => [change.id, change]));
  for (const { id, before, after } of changes.values()) {
    if (!isSame(blocks.get(id) ?? null, after)) continue;
    if (before) blocks.set(id, before);
    else blocks.delete(id);
  }
  // In their order, so that each finds the one before it.
  for (const id of order?.before ?? []) if (blocks.has(id) && !ids.includes(id)) ids.splice(placeOf(id, order!.before, ids), 0, id);
  const changed: Working = {
    title: edit.title?.after === report.title ? edit.title.before : report.title,
    description: edit.description?.after === report.description ? edit.description.before : report.description,
    blocks: ids.flatMap((id): Block[] => (blocks.has(id) ? [blocks.get(id)!] : [])),
  };
  return isSame(changed, report) ? null : changed;
}

/** The edit that does again what was undone. */
export function reversed({ title, description, blocks, order, ...edit }: ReportEdit): ReportEdit {
  const turned = <T>(change: { before: T; after: T } | null): { before: T; after: T } | null => change && { before: change.after, after: change.before };
  return { ...edit, title: turned(title), description: turned(description), order: turned(order), blocks: blocks.map(({ id, before, after }) => ({ id, before: after, after: before })) };
}

/** Put blocks back where they were, unless somebody moved them since. */
function moveBack(ids: string[], before: readonly string[], after: readonly string[]): void {
  const [was, is, now] = [new Set(before), new Set(after), new Set(ids)];
  const common = (id: string): boolean => was.has(id) && is.has(id) && now.has(id);
  if (!isSame(ids.filter(common), after.filter(common))) return;
  const order = before.filter(common)[Symbol.iterator]();
  ids.forEach((id, at) => common(id) && (ids[at] = order.next().value!));
}

/** Where a block belongs that has gone: after the nearest one before it that is still there. */
function placeOf(id: string, before: readonly string[], ids: readonly string[]): number {
  for (let at = before.indexOf(id) - 1; at >= 0; at--) {
    const index = ids.indexOf(before[at]!);
    if (index >= 0) return index + 1;
  }
  return 0;
}
