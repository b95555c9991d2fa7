import { describe, expect, it } from 'vitest';

import type { ReportEdit } from '../../base/wire';
import { reversed, undone } from './earlierEdits';
import type { Block } from './reports';
import type { Working } from './savedReport.svelte';

const block = (id: string, text: string): Block => ({ id, kind: 'text', text });
const report = (texts: Record<string, string>, title = 'Rates'): Working => ({ title, description: '', blocks: Object.entries(texts).map(([id, text]) => block(id, text)) });
const shown = ({ blocks }: Working): Record<string, string> => Object.fromEntries(blocks.map((block) => [block.id, block.kind === 'text' ? block.text : '']));

/** The edit that made one report of another, as the server answers it. */
function edit(before: Working, after: Working): ReportEdit {
  const ids = [...new Set([...before.blocks, ...after.blocks].map(({ id }) => id))];
  const find = (of: Working, id: string): Block | null => of.blocks.find((block) => block.id === id) ?? null;
  const blocks = ids.map((id) => ({ id, before: find(before, id), after: find(after, id) })).filter((edit) => JSON.stringify(edit.before) !== JSON.stringify(edit.after));
  const order = { before: before.blocks.map(({ id }) => id), after: after.blocks.map(({ id }) => id) };
  return { revision: 2, created_ms: 0, title: before.title === after.title ? null : { before: before.title, after: after.title }, description: null, blocks, order: order.before.join() === order.after.join() ? null : order };
}

describe('an edit of an earlier session', () => {
  const before = report({ a: 'one', b: 'two', c: 'three' });

  it('is undone and done again', () => {
    const after = report({ c: 'three', a: 'ONE', x: 'new' }, 'Rate');
    const step = edit(before, after);
    const back = undone(after, step)!;
    expect([back.title, Object.entries(shown(back))]).toEqual(['Rates', Object.entries(shown(before))]);
    expect(undone(back, reversed(step))).toEqual(after);
  });

  it('leaves what somebody wrote since', () => {
    const step = edit(before, report({ a: 'ONE', b: 'TWO', c: 'three' }));
    expect(shown(undone(report({ a: 'theirs', b: 'TWO', y: 'theirs', c: 'three' }), step)!)).toEqual({ a: 'theirs', b: 'two', y: 'theirs', c: 'three' });
    expect(undone(report({ a: 'theirs', b: 'theirs' }), step)).toBeNull();
    expect(undone(before, step)).toBeNull();
  });

  it('brings blocks back to their place, whatever is around them now', () => {
    const removed = edit(before, report({ a: 'one' }));
    expect(Object.keys(shown(undone(report({ y: 'theirs', a: 'one', z: 'theirs' }), removed)!))).toEqual(['y', 'a', 'b', 'c', 'z']);
    expect(Object.keys(shown(undone(report({ y: 'theirs' }), edit(before, report({})))!))).toEqual(['a', 'b', 'c', 'y']);
  });

  it('moves blocks back unless somebody moved them since', () => {
    const moved = edit(before, report({ c: 'three', a: 'one', b: 'two' }));
    expect(Object.keys(shown(undone(report({ c: 'three', y: 'theirs', a: 'one', b: 'two' }), moved)!))).toEqual(['a', 'y', 'b', 'c']);
    expect(undone(report({ b: 'two', a: 'one', c: 'three' }), moved)).toBeNull();
  });
});
