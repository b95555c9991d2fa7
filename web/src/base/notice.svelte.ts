// A message about the last action, with an undo button where it can be undone.

import { NO_RESPONSE, onDemand, reasonOf } from './api';

export interface Message {
  text: string;
  bad: boolean;
  undo: string | null;
}

class Notice {
  message = $state.raw<Message | null>(null);
  /** Counts up when an action was undone, so that lists are requested again. */
  undone = $state(0);
  #undo: (() => Promise<void>) | null = null;

  say(text: string, undo: string | null = null, work: (() => Promise<void>) | null = null): void {
    this.message = { text, bad: false, undo };
    this.#undo = work;
  }

  fail(text: string): void {
    this.message = { text, bad: true, undo: null };
    this.#undo = null;
  }

  /** Do the work, and say why if it fails. */
  async attempt(work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.fail(reasonOf(error));
    }
  }

  close(): void {
    this.message = null;
    this.#undo = null;
  }

  async undo(): Promise<void> {
    const work = this.#undo;
    this.close();
    await this.attempt(async () => {
      await work?.();
      this.undone += 1;
    });
  }
}

export const notice = new Notice();

// What is no longer true is not said any longer.
onDemand.responded = () => {
  if (notice.message?.text === NO_RESPONSE) notice.close();
};
