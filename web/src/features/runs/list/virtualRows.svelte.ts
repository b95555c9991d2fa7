// Which lines of a long list are in view, so that only these are in the page.

import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from '@tanstack/virtual-core';

export interface Line {
  index: number;
  start: number;
}

/** Lines above and below those in view, so that a scroll shows no gap. */
const OVERSCAN = 8;

/** All lines of a list have the same height. */
export class VirtualRows {
  lines = $state.raw<readonly Line[]>([]);
  height = $state(0);
  #virtualizer: Virtualizer<HTMLElement, HTMLElement>;

  /** `above` and `below`: what covers lines at the ends of the element. */
  constructor(element: HTMLElement, above: number, below: number) {
    this.#virtualizer = new Virtualizer({
      count: 0,
      getScrollElement: () => element,
      estimateSize: () => 1,
      scrollPaddingStart: above,
      scrollPaddingEnd: below,
      overscan: OVERSCAN,
      scrollToFn: elementScroll,
      observeElementRect,
      observeElementOffset,
      onChange: () => this.#read(),
    });
  }

  /** Follow the element until the returned function is called. */
  mount(): () => void {
    return this.#virtualizer._didMount();
  }

  resize(count: number, height: number): void {
    const virtualizer = this.#virtualizer;
    virtualizer.setOptions({ ...virtualizer.options, count, estimateSize: () => height });
    virtualizer.measure();
    virtualizer._willUpdate();
    this.#read();
  }

  scrollTo(index: number): void {
    this.#virtualizer.scrollToIndex(index, { align: 'auto' });
  }

  #read(): void {
    this.lines = this.#virtualizer.getVirtualItems().map(({ index, start }) => ({ index, start }));
    this.height = this.#virtualizer.getTotalSize();
  }
}
