import { describe, expect, it } from 'vitest';
import { EventParser, eventsOf } from './serverEvents';

const STREAM = 'event: news\nid: a:1\ndata: {"run":\ndata: 1}\n\n: alive\n\nevent: unauthorised\r\ndata: é\r\n\r\n';
const EVENTS = [
  { name: 'news', data: '{"run":\n1}', id: 'a:1' },
  { name: 'unauthorised', data: 'é', id: 'a:1' },
];

describe('events of a stream', () => {
  it('are the same however it is cut into pieces', () => {
    for (let size = 1; size <= STREAM.length; size++) {
      const parser = new EventParser();
      const events = [];
      for (let i = 0; i < STREAM.length; i += size) events.push(...parser.push(STREAM.slice(i, i + size)));
      expect(events).toEqual(EVENTS);
    }
  });

  it('come from bytes, cut within a character too', async () => {
    const bytes = new TextEncoder().encode(STREAM);
    const pieces = [...bytes].map((byte) => new Uint8Array([byte]));
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        const piece = pieces.shift();
        if (piece) controller.enqueue(piece);
        else controller.close();
      },
    });
    let alive = 0;
    const events = [];
    for await (const event of eventsOf(body, () => (alive += 1))) events.push(event);
    expect(events).toEqual(EVENTS);
    expect(alive).toBe(bytes.length);
  });

  it('without data are no events, and an unfinished one is not given', () => {
    expect(new EventParser().push('event: news\n\ndata: half\n')).toEqual([]);
  });
});
