// Server-sent events from a response: what EventSource does, for requests that need headers of their own.

export interface ServerEvent {
  name: string;
  data: string;
  /** The position in the stream, from which a new request continues. */
  id: string;
}

/** Splits a stream of text into events. Skips comments, which the server sends to keep the connection open. */
export class EventParser {
  #rest = '';
  #event = { name: 'message', data: [] as string[] };
  #id = '';

  /** The events that a piece of the stream completes. */
  push(piece: string): ServerEvent[] {
    const lines = (this.#rest + piece).split('\n');
    this.#rest = lines.pop()!;
    const events: ServerEvent[] = [];
    for (const line of lines) {
      if (line.replace(/\r$/, '') !== '') this.#take(line.replace(/\r$/, ''));
      else {
        const { name, data } = this.#event;
        if (data.length > 0) events.push({ name, data: data.join('\n'), id: this.#id });
        this.#event = { name: 'message', data: [] };
      }
    }
    return events;
  }

  #take(line: string): void {
    const [, field, value] = /^([^:]*)(?:: ?(.*))?$/s.exec(line)!;
    if (field === 'event') this.#event.name = value ?? '';
    else if (field === 'data') this.#event.data.push(value ?? '');
    else if (field === 'id') this.#id = value ?? '';
  }
}

/** The events of a response, until it ends. Calls `alive` for each piece that arrives. */
export async function* eventsOf(body: ReadableStream<Uint8Array>, alive: () => void): AsyncGenerator<ServerEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const parser = new EventParser();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      alive();
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    reader.releaseLock();
  }
}
