// What the user is about to add to a report, from wherever it is shown.

import { server } from '../../base/about.svelte';
import { me } from '../../base/account.svelte';
import { here } from '../../base/route.svelte';
import type { ReportPanel } from './reports';

export interface Addition {
  /** Of the runs; a project that is null is found by them. */
  entity: string;
  project: string | null;
  runs: readonly string[];
  /** All runs of the project that it selects, instead of `runs`. */
  filter?: string;
  panel: Omit<ReportPanel, 'id' | 'run_sets' | 'frozen_ms'>;
}

class Additions {
  /** What the dialog asks about; null: it is not open. */
  chosen = $state.raw<Addition | null>(null);

  /** What opens the dialog; undefined where there are no reports, or nothing to show in one. */
  action(entity: string | null, make: (entity: string) => Addition | Promise<Addition>): (() => void) | undefined {
    if (!server.accounts || !me.account || here.guest || entity === null) return undefined;
    return () => void Promise.resolve(make(entity)).then((addition) => (this.chosen = addition));
  }
}

export const additions = new Additions();
