// The alert rules of a team or user, with the rules that are ready to be chosen.

import type { RuleDefinition, StoredRule } from './alertRules';
import { Listing } from '../../base/listing.svelte';

export class RuleList extends Listing<StoredRule> {
  readonly path: string;
  ready = $derived((this.answer.ready ?? []) as RuleDefinition[]);

  constructor(entity: string) {
    super('rules');
    this.path = `entities/${encodeURIComponent(entity)}/alert-rules`;
  }

  override load(): Promise<void> {
    return super.load(this.path, { limit: 200 });
  }
}
