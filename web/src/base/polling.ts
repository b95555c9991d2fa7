// Requests that are repeated while their view is shown.

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
