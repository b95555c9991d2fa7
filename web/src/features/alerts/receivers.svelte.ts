// Where the automations of a team, or about a registry of the organisation, can send to.

import { get } from '../../base/api';
import type { AppriseDestination, Member, Receivers, SlackDestination, Webhook } from '../../base/wire';

/** Values and what they are called, for lists to choose from. */
export type Choices = readonly (readonly [value: string, text: string])[];

export class AutomationReceivers {
  slack = $state.raw<Choices>([]);
  webhooks = $state.raw<Choices>([]);
  apprise = $state.raw<Choices>([]);
  /** Members of the team; about a registry any user can get mail, so there are none to choose from. */
  members = $state.raw<Choices>([]);

  /** All that are there. `path`: of the team or of the registry in the API. */
  async load(path: string, isRegistry: boolean): Promise<void> {
    const named = (rows: readonly { id: number; name: string }[]): Choices => rows.map(({ id, name }) => [String(id), name]);
    if (isRegistry) {
      const { slack, webhook, apprise } = await get<Receivers>(`${path}/receivers`);
      [this.slack, this.webhooks, this.apprise] = [named(slack), named(webhook), named(apprise)];
      return;
    }
    const all = { limit: 200 };
    const [slack, webhooks, apprise, members] = await Promise.all([
      get<{ slack_destinations: SlackDestination[] }>(`${path}/slack-destinations`, all),
      get<{ webhooks: Webhook[] }>(`${path}/webhooks`, all),
      get<{ apprise_destinations: AppriseDestination[] }>(`${path}/apprise-destinations`, all),
      get<{ members: Member[] }>(`${path}/members`, all),
    ]);
    this.slack = slack.slack_destinations.map(({ id, channel }) => [String(id), channel]);
    this.webhooks = named(webhooks.webhooks);
    this.apprise = apprise.apprise_destinations.map(({ id, name, shown }) => [String(id), `${name} (${shown})`]);
    this.members = members.members.map(({ name, display_name }) => [name, display_name || name]);
  }
}
