// How a run is going in a few numbers: one request, and again every few seconds while it runs.

import { get, runPath, type RunKey } from '../../base/api';
import { poll } from '../../base/polling';
import type { Headline } from '../../base/wire';

/** Also after a request that failed. */
const RUNNING_MS = 10_000;
const ENDED_MS = 600_000;

export class RunHeadline {
  now = $state.raw<Headline | null>(null);
  /** It could not be loaded, so that nothing waits for it. */
  failed = $state(false);

  /** Load it now, and again as long as the page is open. Returns what stops it. */
  follow(key: RunKey, isRunning: boolean): () => void {
    return poll(
      async (signal) => {
        try {
          this.now = await get<Headline>(runPath(key, '/headline'), {}, signal);
          this.failed = false;
        } catch {
          this.failed = !signal.aborted; // an older server has none, and an outage is named above the charts
        }
      },
      () => (isRunning || this.failed ? RUNNING_MS : ENDED_MS),
    );
  }
}
