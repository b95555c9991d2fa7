// New notifications as those of the browser, if the user wants them in this browser.

import { leave, storageKey } from '../../base/address';
import type { InboxItem } from '../../base/wire';

const KEY = storageKey('runvitals.desktop-notifications');
const MAX_AT_ONCE = 3;

class DesktopNotifications {
  on = $state(false);
  /** Those that were there when the page was opened, or were shown. */
  #shownIds: Set<string> | null = null;

  constructor() {
    this.on = this.possible && localStorage.getItem(KEY) === 'on' && Notification.permission === 'granted';
  }

  /** Browsers have them on secure origins only. */
  get possible(): boolean {
    return 'Notification' in window;
  }

  /** Switch them on or off; on asks the user's permission. */
  async choose(on: boolean): Promise<void> {
    const allowed = on && (await Notification.requestPermission()) === 'granted';
    this.on = allowed;
    localStorage.setItem(KEY, allowed ? 'on' : 'off');
    if (on && !allowed) throw new Error('This browser does not let this site show notifications: allow them in its settings.');
  }

  /** Show those that are new since the last call; the first call shows none. */
  show(unread: readonly InboxItem[]): void {
    const earlier = this.#shownIds;
    this.#shownIds = new Set([...(earlier ?? []), ...unread.map(({ id }) => id)]);
    if (!this.on || earlier === null) return;
    for (const { id, title, place, path } of unread.filter((item) => !earlier.has(item.id)).slice(0, MAX_AT_ONCE)) {
      const notification = new Notification(title, { body: place, tag: id });
      notification.onclick = () => {
        window.focus();
        if (path) leave(path);
        notification.close();
      };
    }
  }
}

export const desktop = new DesktopNotifications();
