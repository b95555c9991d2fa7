import { afterEach, expect, test, vi } from 'vitest';
import { watchNear } from './near';

type Told = (entries: { isIntersecting: boolean }[]) => void;

afterEach(() => vi.unstubAllGlobals());

test('of several changes told at once, the last counts', () => {
  const observers: { told: Told; rootMargin: string; observed: unknown[]; ended: boolean }[] = [];
  vi.stubGlobal(
    'IntersectionObserver',
    class {
      own = { told: (() => {}) as Told, rootMargin: '', observed: [] as unknown[], ended: false };
      constructor(told: Told, { rootMargin }: { rootMargin: string }) {
        Object.assign(this.own, { told, rootMargin });
        observers.push(this.own);
      }
      observe(element: unknown): void {
        this.own.observed.push(element);
      }
      disconnect(): void {
        this.own.ended = true;
      }
    },
  );
  const chart = {} as Element;
  const changes: boolean[] = [];
  const end = watchNear(chart, 200, (near) => changes.push(near));
  const [observer] = observers;
  observer!.told([{ isIntersecting: false }, { isIntersecting: true }]);
  observer!.told([{ isIntersecting: false }]);
  expect(changes).toEqual([true, false]);
  expect([observer!.rootMargin, observer!.observed, observer!.ended]).toEqual(['200px', [chart], false]);
  end();
  expect(observer!.ended).toBe(true);
});
