// The findings about the run that a page shows: its card loads them, its charts show what decided.

import { get } from '../../base/api';
import { poll } from '../../base/polling';
import type { FindingRules, Findings } from '../../base/wire';

/** After a request that failed. */
const AGAIN_MS = 10_000;

export class RunFindings {
  /** null until they are loaded. */
  value = $state.raw<Findings | null>(null);
  failed = $state(false);
  /** What rules mean, and the remedies for missing signals; null until someone asks. */
  rules = $state.raw<FindingRules | null>(null);
  #asked = false;

  /** Load the findings of a run again and again. Returns what ends it. */
  follow(path: string, everyMs: number): () => void {
    return poll(
      async (signal) => {
        try {
          this.value = await get<Findings>(path, {}, signal);
          this.failed = false;
        } catch {
          // The verdict is no reason to disturb who looks at the charts: a server that is away says so itself.
          this.failed = this.value === null;
        }
      },
      () => (this.failed ? AGAIN_MS : everyMs),
    );
  }

  /** Load the rules, once. Without them, ids and keys say what they can. */
  async loadRules(): Promise<void> {
    if (this.#asked) return;
    this.#asked = true;
    try {
      this.rules = await get<FindingRules>('findings/rules');
    } catch {
      this.#asked = false;
    }
  }
}
