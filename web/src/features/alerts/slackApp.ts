// The way to Slack, where a channel is chosen, and back.

import { leave } from '../../base/address';
import { send } from '../../base/api';
import { notice } from '../../base/notice.svelte';
import { here } from '../../base/route.svelte';
import type { SlackInstallUrl } from '../../base/wire';

/** Leave for Slack. `path`: of the API. */
export async function chooseAtSlack(path: string): Promise<void> {
  await notice.attempt(async () => {
    const { url } = await send<SlackInstallUrl>('POST', path, {});
    leave(url);
  });
}

/** Say what came of it, once, after the way back. */
export function sayWhatSlackDid(): void {
  const channel = here.query.get('slack');
  const problem = here.query.get('slack_error');
  if (channel !== null) notice.say(`${channel} is connected.`);
  if (problem !== null) notice.fail(`Slack was not connected: ${problem}`);
  if (channel !== null || problem !== null) here.set({ slack: null, slack_error: null });
}
