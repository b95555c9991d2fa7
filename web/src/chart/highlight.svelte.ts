// The line that the user points at elsewhere on the page, in a list of runs: charts fade the others.

const RESTING_MS = 60;

class Highlight {
  /** The id of a line; null: all are as usual. */
  id = $state<string | null>(null);
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** A pointer that passes over a list highlights nothing until it rests. */
  set(id: string | null): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => (this.id = id), RESTING_MS);
  }
}

export const highlight = new Highlight();
