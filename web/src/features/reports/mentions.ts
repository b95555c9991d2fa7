// What `@` in a report offers: people, runs and artifacts that the user may see.

import { findAll, MENTIONED } from '../search/results';
import type { CommandGroup } from '../search/commands';
import type { BlockChoice } from '../user_content/markdownEditor';

/** People are mentioned by name, so that they hear of it; runs and artifacts become links. */
export async function mentions(words: string, signal: AbortSignal): Promise<BlockChoice[]> {
  let groups: readonly CommandGroup[] = [];
  await findAll(MENTIONED, words, signal, (loaded) => (groups = loaded));
  return groups.flatMap(({ title: kind, commands }) =>
    commands.map(({ id, title, note, href }) => {
      const name = kind === 'People' ? id.replace(/^user /, '') : null;
      return name === null
        ? { title, note: `${kind === 'Runs' ? 'run' : 'artifact'} · ${note ?? ''}`, insert: (editor) => editor.write(title, href ?? null) }
        : { title: `@${name}`, note: title === name ? undefined : title, insert: (editor) => editor.write(`@${name}`, null) };
    }),
  );
}
