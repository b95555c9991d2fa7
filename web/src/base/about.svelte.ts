// The server that this page came from: its kind and capabilities, requested once.

import { currentPath, leave } from './address';
import { signOutHere } from './account.svelte';
import { ApiError, get, onDemand } from './api';
import type { About } from './wire';

export type Capability = 'stop' | 'delete' | 'edit' | 'views';

class ThisServer {
  about = $state.raw<About | null>(null);

  #loaded: Promise<void>;

  constructor() {
    this.#loaded = this.load();
    onDemand.signIn = () => void this.#signIn();
  }

  /** To the page where users sign in, or enter a token; it leads back to this view. */
  async #signIn(): Promise<void> {
    await this.#loaded;
    if (this.accounts) signOutHere();
    else leave(`/login?next=${encodeURIComponent(currentPath() + window.location.search)}`);
  }

  /** Ask again: the first administrator changes what the server is. */
  async load(): Promise<void> {
    try {
      this.about = await get<About>('about');
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setTimeout(() => void this.load(), 3000); // the view itself shows the error
    }
  }

  /** Runs of many machines in one place, rather than the journals of this one. */
  get shared(): boolean {
    return this.about?.kind === 'server';
  }

  /** Users sign in. False until it is known. */
  get accounts(): boolean {
    return this.about?.auth === 'accounts';
  }

  /** False until it is known, and for local journals, which belong to the runs that write them. */
  can(capability: Capability): boolean {
    return this.about?.capabilities.includes(capability) ?? false;
  }
}

export const server = new ThisServer();
