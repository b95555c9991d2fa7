// Requests that are made, once or again and again, while their view is shown.

import { onDestroy } from 'svelte';
import { reasonOf } from './api';

/** While a component is shown; call it while that is made. What it asked for must lead nobody away who has left it. */
export function whileShown(): AbortSignal {
  const closed = new AbortController();
  onDestroy(() => closed.abort());
  return closed.signal;
}

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
 * Call `load` now, and again `everyMs` after each answer; null: no more. In a hidden window, wait until it is shown. Returns
 * what stops it.
 *
 * `load` must handle its own errors; the signal is aborted when it is stopped.
 */
export function poll(load: (signal: AbortSignal) => Promise<void>, everyMs: () => number | null): () => void {
  const closed = new AbortController();
  let timer: ReturnType<typeof setTimeout>;
  const again = async (): Promise<void> => {
    // One that is opened in the background, or was hidden for long, must not wait once more when it is looked at.
    if (document.hidden) return document.addEventListener('visibilitychange', again, { once: true, signal: closed.signal });
    await load(closed.signal);
    if (closed.signal.aborted) return; // what `everyMs` reads may be gone
    const ms = everyMs();
    if (ms !== null) timer = setTimeout(again, ms);
  };
  void again();
  return () => {
    closed.abort();
    clearTimeout(timer);
  };
}
