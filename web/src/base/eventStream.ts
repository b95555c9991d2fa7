// An event stream of the server: reconnects by itself, from the last event that it got.

import { request } from './address';
import { apiPath, noteReached } from './api';
import { guest } from './guest.svelte';
import { eventsOf } from './serverEvents';

/** Before the next attempt: after the connection was lost, and after the server refused it. */
const LOST_MS = 3000;
const REFUSED_MS = 5000;
/** The server sends something every 15 s. A connection that brings nothing for this long is lost. */
const SILENT_MS = 50_000;

/** `lost`: the server did not respond to the last attempt; another follows. */
export type Link = 'connecting' | 'open' | 'paused' | 'lost';

/**
 * Follows a stream until it is closed.
 *
 * It is read by `fetch`, because an EventSource cannot send the header of a guest link. A hidden tab closes its
 * connection: a browser has six to a server, for all its tabs together.
 */
export class EventStream {
  #connection: AbortController | null = null;
  #again: ReturnType<typeof setTimeout> | undefined;
  #silence: ReturnType<typeof setTimeout> | undefined;
  #last: string;
  #state: Link = 'connecting';
  #watch = (): void => (document.hidden ? this.#pause() : this.#connect());

  constructor(
    /** Of the API. */
    private readonly path: string,
    private readonly on: { event: (name: string, data: string) => void; link: (link: Link) => void; refused: () => void },
    /** The position to begin at; empty for what is new from now on. */
    after = '',
  ) {
    this.#last = after;
    document.addEventListener('visibilitychange', this.#watch);
    if (!document.hidden) this.#connect();
  }

  #connect(): void {
    if (this.#connection) return;
    const connection = new AbortController();
    this.#connection = connection;
    if (this.#state !== 'lost') this.#set('connecting');
    void this.#follow(connection).then((refused) => {
      clearTimeout(this.#silence);
      if (this.#connection !== connection) return; // paused or closed
      connection.abort(); // frees what is still open
      this.#set(refused || this.#state === 'open' ? 'connecting' : 'lost');
      if (refused) this.on.refused();
      this.#again = setTimeout(
        () => {
          this.#connection = null;
          this.#connect();
        },
        refused ? REFUSED_MS : LOST_MS,
      );
    });
  }

  /** Read until the connection ends. Resolves to whether the server refused it, rather than it being lost. */
  async #follow(connection: AbortController): Promise<boolean> {
    try {
      const headers = { accept: 'text/event-stream', ...guest.headers(), ...(this.#last && { 'last-event-id': this.#last }) };
      const how = { headers, signal: connection.signal, cache: 'no-store' } as const;
      this.#expectSign(connection);
      const response = await request(apiPath(this.path), how);
      if (!response.ok || !response.body) return true;
      this.#set('open');
      for await (const event of eventsOf(response.body, () => this.#expectSign(connection))) {
        if (connection.signal.aborted) return false;
        this.#last = event.id;
        if (event.name === 'unauthorised') return true;
        this.on.event(event.name, event.data);
      }
    } catch (problem) {
      // A lost connection is a TypeError, and an aborted one a DOMException: anything else is an error of this page.
      if (!(problem instanceof TypeError || problem instanceof DOMException)) throw problem;
    }
    return false;
  }

  #set(state: Link): void {
    this.#state = state;
    if (state === 'open' || state === 'lost') noteReached(state === 'open');
    this.on.link(state);
  }

  #expectSign(connection: AbortController): void {
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => connection.abort(), SILENT_MS);
  }

  #pause(): void {
    this.#end();
    this.#set('paused');
  }

  close(): void {
    document.removeEventListener('visibilitychange', this.#watch);
    this.#end();
  }

  #end(): void {
    clearTimeout(this.#again);
    clearTimeout(this.#silence);
    const connection = this.#connection;
    this.#connection = null;
    connection?.abort();
  }
}
