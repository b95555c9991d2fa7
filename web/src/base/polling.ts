// Requests that are made, once or again and again, while their view is shown.

import { reasonOf } from './api';

/**
 * Request what a view shows, in an effect: `got` gets the answer, `failed` why there is none, or '' once there is one.
 * Returns what stops it, after which neither is called.
 */
export function request<T>(load: (signal: AbortSignal) => Promise<T>, got: (answer: T) => void, failed: (reason: string) => void): () => void {
  const closed = new AbortController();
  load(closed.signal).then(
    (answer) => {
      if (closed.signal.aborted) return;
      failed('');
      got(answer);
    },
    (problem: unknown) => {
      if (!closed.signal.aborted) failed(reasonOf(problem));
    },
  );
  return () => closed.abort();
}

/**
 * Call `load` now, and again `everyMs` after each answer while the window is visible. Returns what stops it.
 *
 * `load` must handle its own errors; the signal is aborted when it is stopped.
 */
export function poll(load: (signal: AbortSignal) => Promise<void>, everyMs: () => number): () => void {
  const closed = new AbortController();
  let timer: ReturnType<typeof setTimeout>;
  const again = async (): Promise<void> => {
    if (!document.hidden) await load(closed.signal);
    if (!closed.signal.aborted) timer = setTimeout(again, everyMs());
  };
  void again();
  return () => {
    closed.abort();
    clearTimeout(timer);
  };
}
