// The server that this page came from: its kind and capabilities, requested once.

import { ApiError, get, type About } from './api';

export type Capability = 'stop' | 'delete' | 'edit';

class ThisServer {
  about = $state.raw<About | null>(null);

  constructor() {
    void this.#load();
  }

  async #load(): Promise<void> {
    try {
      this.about = await get<About>('about');
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setTimeout(() => void this.#load(), 3000); // the view itself shows the error
    }
  }

  /** Runs of many machines in one place, rather than the journals of this one. */
  get shared(): boolean {
    return this.about?.kind === 'server';
  }

  /** False until it is known, and for local journals, which belong to the runs that write them. */
  can(what: Capability): boolean {
    return this.about?.capabilities.includes(what) ?? false;
  }
}

export const server = new ThisServer();
