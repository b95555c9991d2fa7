// A run's event stream. Browsers reconnect automatically, and send the last event that they received (Last-Event-ID).

import { address, runPath, type News } from './api';

/** Browsers do not reconnect automatically after an error response. */
const RECONNECT_MS = 5000;

export type Link = 'connecting' | 'open' | 'paused';

/**
 * Follows a run until it is closed.
 *
 * A hidden tab closes its connection: a browser has six to a server, for all its tabs together.
 */
export class EventStream {
  #source: EventSource | null = null;
  #again: ReturnType<typeof setTimeout> | undefined;
  #watch = (): void => (document.hidden ? this.#pause() : this.#connect());

  constructor(
    private readonly run: string,
    private readonly on: { news: (news: News) => void; link: (link: Link) => void; refused: () => void },
  ) {
    document.addEventListener('visibilitychange', this.#watch);
    if (!document.hidden) this.#connect();
  }

  #connect(): void {
    if (this.#source) return;
    this.on.link('connecting');
    const source = new EventSource(address(`${runPath(this.run)}/live`));
    source.addEventListener('open', () => this.on.link('open'));
    source.addEventListener('error', () => this.#failed(source));
    source.addEventListener('news', (event) => this.on.news(JSON.parse((event as MessageEvent<string>).data) as News));
    this.#source = source;
  }

  #failed(source: EventSource): void {
    this.on.link('connecting');
    if (source.readyState !== EventSource.CLOSED) return;
    this.on.refused();
    this.#again = setTimeout(() => {
      this.#source = null;
      this.#connect();
    }, RECONNECT_MS);
  }

  #pause(): void {
    clearTimeout(this.#again);
    this.#source?.close();
    this.#source = null;
    this.on.link('paused');
  }

  close(): void {
    document.removeEventListener('visibilitychange', this.#watch);
    clearTimeout(this.#again);
    this.#source?.close();
    this.#source = null;
  }
}
