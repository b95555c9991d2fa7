// Comments on a report: which thread they belong to, and what threads are about.

import type { ReportComment } from '../../base/wire';

/** What threads are about: a block, a panel, or the report if both are null. */
export interface CommentPlace {
  block: string | null;
  panel: string | null;
}

/** A comment and what was replied, in the order in which it was written. */
export interface Thread {
  first: ReportComment;
  replies: readonly ReportComment[];
}

export const EMOJI = ['👍', '👎', '😄', '🎉', '😕', '❤', '🚀', '👀'] as const;

/** All threads, in the order of their first comments. A reply whose thread is gone is a thread of its own. */
export function threadsOf(comments: readonly ReportComment[]): Thread[] {
  const firstOf = new Map<number, number>();
  const threads = new Map<number, { first: ReportComment; replies: ReportComment[] }>();
  for (const comment of comments) {
    const first = comment.reply_to === null ? undefined : firstOf.get(comment.reply_to);
    const thread = first === undefined ? undefined : threads.get(first);
    if (thread) thread.replies.push(comment);
    else threads.set(comment.id, { first: comment, replies: [] });
    firstOf.set(comment.id, thread ? thread.first.id : comment.id);
  }
  return [...threads.values()];
}

/** The threads about a place. */
export const threadsAbout = (threads: readonly Thread[], subject: CommentPlace): Thread[] =>
  threads.filter(({ first }) => first.panel === subject.panel && (subject.panel !== null || first.block === subject.block));

/** Threads about blocks and panels that the report has no longer. */
export const orphanedThreads = (threads: readonly Thread[], blockIds: ReadonlySet<string>): Thread[] =>
  threads.filter(({ first }) => {
    const about = first.panel ?? first.block;
    return about !== null && !blockIds.has(about);
  });

export const isOpen = ({ first }: Thread): boolean => first.resolved_ms === null;
