// The form for editing a run: name, notes, tags, project.

import type { RunDetail } from '../../base/api';
import type { RunChanges } from '../../base/wire';

/** The form's fields. Tags are one per line, because a tag may contain any other character. */
export interface Form {
  name: string;
  notes: string;
  tags: string;
  project: string;
}

export const formOf = (run: Pick<RunDetail, 'id' | 'name' | 'notes' | 'tags' | 'project'>): Form => ({
  name: run.name === run.id ? '' : run.name,
  notes: run.notes,
  tags: run.tags.join('\n'),
  project: run.project,
});

/** Only the changed fields, so that other users' changes are kept. */
export function changesOf(before: Form, after: Form): RunChanges {
  const changes: RunChanges = {};
  if (after.name.trim() !== before.name) changes.name = after.name.trim();
  if (after.notes !== before.notes) changes.notes = after.notes;
  if (after.tags !== before.tags) changes.tags = tagsOf(after.tags);
  if (after.project.trim() !== before.project) changes.project = after.project.trim();
  return changes;
}

/** Each tag once, in the order of the lines. */
export function tagsOf(text: string): string[] {
  return [...new Set(text.split('\n').map((line) => line.trim()))].filter(Boolean);
}
