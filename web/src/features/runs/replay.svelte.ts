// Plays a run that has ended: a time that goes from its begin to its end, at a multiple of the real speed.

export const SPEEDS = [1, 10, 60, 600] as const;
export type Speed = (typeof SPEEDS)[number];
const USUAL_SPEED: Speed = 60;

const TICK_MS = 250;
/** After a pause of the tab, a replay goes on where it was. */
const MAX_TICK_MS = 1000;

export class Replay {
  at = $state(0);
  playing = $state(false);
  speed = $state<Speed>(USUAL_SPEED);
  #timer: ReturnType<typeof setInterval> | undefined;
  #last = 0;

  constructor(
    readonly start: number,
    readonly end: number,
    private readonly moved: (at: number) => void,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.at = start;
  }

  /** Go on, or from the begin if it is at the end. */
  play(): void {
    if (this.playing) return;
    if (this.at >= this.end) this.seek(this.start);
    this.playing = true;
    this.#last = this.now();
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
  }

  pause(): void {
    this.playing = false;
    clearInterval(this.#timer);
  }

  seek(at: number): void {
    this.at = Math.min(this.end, Math.max(this.start, at));
    this.moved(this.at);
  }

  #tick(): void {
    const now = this.now();
    const passed = Math.min(MAX_TICK_MS, now - this.#last);
    this.#last = now;
    this.seek(this.at + passed * this.speed);
    if (this.at >= this.end) this.pause();
  }
}

/** What the address of a page says about a replay: the moment in seconds after the begin of the run, and the speed. */
export const replayChanges = ({ at, start, speed }: Pick<Replay, 'at' | 'start' | 'speed'>): Record<string, string | null> => ({
  replay: String(Math.round(at - start) / 1000),
  speed: speed === USUAL_SPEED ? null : String(speed),
});

/** The same read from an address: how long after the begin it is; null if it has no replay. */
export function replayOf(query: URLSearchParams): { afterMs: number; speed: Speed } | null {
  const seconds = query.get('replay');
  if (seconds === null || !/^\d{1,9}(\.\d{1,3})?$/.test(seconds)) return null;
  return { afterMs: Math.round(Number(seconds) * 1000), speed: SPEEDS.find((speed) => String(speed) === query.get('speed')) ?? USUAL_SPEED };
}

/** The shortest first part of a run that is requested by itself. */
const MIN_STAGE_MS = 10_000;

/**
 * The end of the part of a run whose points are requested while a replay is at a time.
 *
 * It is the run, half of it, a quarter and so on: so a replay has at least half as many points as a chart of the whole run, and
 * a run of a day is requested 14 times.
 */
export function stageEnd(start: number, end: number, at: number): number {
  let length = end - start;
  while (length / 2 >= Math.max(MIN_STAGE_MS, at - start)) length /= 2;
  return Math.ceil(start + length);
}
