import { describe, expect, it } from 'vitest';
import type { ReportComment } from '../../base/wire';
import { isOpen, orphanedThreads, threadsAbout, threadsOf } from './comments';

const comment = (id: number, fields: Partial<ReportComment> = {}): ReportComment => ({
  id,
  reply_to: null,
  author: 'bob',
  author_name: 'Bob',
  block: null,
  panel: null,
  x: null,
  text: 'text',
  html: '<p>text</p>',
  created_ms: id,
  changed_ms: null,
  resolved_ms: null,
  resolved_by: null,
  reactions: [],
  may: { update: false, delete: false, resolve: false },
  ...fields,
});

describe('threads', () => {
  it('have replies to replies in one row', () => {
    const threads = threadsOf([comment(1), comment(2), comment(3, { reply_to: 1 }), comment(4, { reply_to: 3 })]);
    expect(threads.map(({ first, replies }) => [first.id, replies.map(({ id }) => id)])).toEqual([[1, [3, 4]], [2, []]]);
  });

  it('keep a reply whose thread is gone', () => {
    expect(threadsOf([comment(5, { reply_to: 1 })]).map(({ first }) => first.id)).toEqual([5]);
  });

  it('are about a block, a panel or the report', () => {
    const threads = threadsOf([comment(1), comment(2, { block: 'aaaa' }), comment(3, { block: 'aaaa', panel: 'pppp' })]);
    const about = (block: string | null, panel: string | null): number[] => threadsAbout(threads, { block, panel }).map(({ first }) => first.id);
    expect([about(null, null), about('aaaa', null), about('aaaa', 'pppp')]).toEqual([[1], [2], [3]]);
    expect(orphanedThreads(threads, new Set(['aaaa'])).map(({ first }) => first.id)).toEqual([3]);
    expect(orphanedThreads(threads, new Set(['aaaa', 'pppp']))).toEqual([]);
  });

  it('are open until they are resolved', () => {
    expect(threadsOf([comment(1), comment(2, { resolved_ms: 5 })]).map(isOpen)).toEqual([true, false]);
  });
});
