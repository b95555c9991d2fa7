/** Calls back whenever an element comes near what is in view, or leaves it. Returns what ends that. */
export function watchNear(element: Element, marginPx: number, changed: (near: boolean) => void): () => void {
  // A busy browser tells several changes at once; the last is how it is now.
  const watcher = new IntersectionObserver((entries) => changed(entries[entries.length - 1]!.isIntersecting), {
    rootMargin: `${marginPx}px`,
  });
  watcher.observe(element);
  return () => watcher.disconnect();
}
