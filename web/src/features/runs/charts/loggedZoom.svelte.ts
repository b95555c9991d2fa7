// Finer points of logged metrics between two steps, for charts that are zoomed in.

import { get, runPath, type RunKey } from '../../../base/api';
import { fromLogged, type LoggedLines, type LoggedPoints } from '../../../chart/loggedPoints';
import type { Range } from '../../../chart/points';
import type { Logged } from '../../../base/wire';

const PAUSE_MS = 120;
const NAMES_PER_REQUEST = 20;
/** Of the width, at both ends: lines go on to the edge of the chart. */
const MARGIN = 0.05;

/** The steps of a zoom: those of the points in it, with some beyond both ends. Null if there are none. */
export function stepsIn(lines: Iterable<LoggedPoints>, inZoom: (points: LoggedPoints, i: number) => boolean): Range | null {
  let [min, max] = [Infinity, -Infinity];
  for (const points of lines) {
    points.x.forEach((_, i) => {
      if (!inZoom(points, i)) return;
      // A bucket has the steps up to the next one.
      min = Math.min(min, points.x[Math.max(0, i - 1)]!);
      max = Math.max(max, points.x[Math.min(points.x.length - 1, i + 1)]!);
    });
  }
  return max > min ? { min, max } : null;
}

export function widened({ min, max }: Range): Range {
  const more = Math.max(1, (max - min) * MARGIN);
  return { min: Math.floor(min - more), max: Math.ceil(max + more) };
}

export class LoggedZoom {
  /** Counts up when points arrive. */
  version = $state(0);
  error = $state('');
  #lines = new Map<string, { steps: string; lines: LoggedLines }>();
  #requests = new Map<string, { steps: Range; names: Set<string> }>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #closed = new AbortController();

  constructor(
    private readonly key: RunKey,
    private readonly maxPoints: number,
    /** Whether points are for a logarithmic axis. */
    private readonly log: () => boolean,
  ) {}

  close(): void {
    this.#closed.abort();
    clearTimeout(this.#timer);
  }

  #textOf({ min, max }: Range): string {
    return `${min}:${max}:${this.log() ? 'log' : 'linear'}`;
  }

  /** The points of a name between two steps; undefined until they are loaded. */
  lines(name: string, steps: Range): LoggedLines | undefined {
    const zoomed = this.#lines.get(name);
    return zoomed?.steps === this.#textOf(steps) ? zoomed.lines : undefined;
  }

  /** Load the points of a name between two steps. Returns what withdraws it, if it has not begun. */
  show(name: string, steps: Range): () => void {
    const text = this.#textOf(steps);
    if (this.#lines.get(name)?.steps === text) return () => undefined;
    const request = this.#requests.get(text) ?? { steps, names: new Set() };
    request.names.add(name);
    this.#requests.set(text, request);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#load(), PAUSE_MS);
    return () => request.names.delete(name);
  }

  async #load(): Promise<void> {
    const requests = [...this.#requests];
    this.#requests.clear();
    try {
      for (const [text, { steps, names }] of requests) {
        const all = [...names];
        for (let i = 0; i < all.length; i += NAMES_PER_REQUEST) {
          const keys = all.slice(i, i + NAMES_PER_REQUEST);
          const params = { keys, max_points: this.maxPoints, first_step: steps.min, last_step: steps.max, ...(text.endsWith('log') && { scale: 'log' }) };
          const linesByKey = fromLogged(await get<Logged>(runPath(this.key, '/history'), params, this.#closed.signal));
          for (const name of keys) this.#lines.set(name, { steps: text, lines: linesByKey.get(name) ?? new Map() });
          this.version += 1;
        }
      }
      this.error = '';
    } catch (problem) {
      if (!this.#closed.signal.aborted) this.error = problem instanceof Error ? problem.message : String(problem);
    }
  }
}
