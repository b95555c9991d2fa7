// Which sections of panels are folded. The address names those that are not as usual.

import { here } from '../../base/route.svelte';

const PARAMETERS = ['fold', 'unfold'] as const;

const named = (parameter: string): Set<string> => new Set((here.query.get(parameter) ?? '').split(',').filter(Boolean).map(decodeURIComponent));

export class Folds {
  #folded = $derived(named('fold'));
  #unfolded = $derived(named('unfold'));

  has(id: string, usually: boolean): boolean {
    return usually ? !this.#unfolded.has(id) : this.#folded.has(id);
  }

  set(id: string, isFolded: boolean): void {
    const changes = PARAMETERS.map((parameter): [string, string] => {
      const ids = named(parameter);
      if ((parameter === 'fold') === isFolded) ids.add(id);
      else ids.delete(id);
      return [parameter, [...ids].map(encodeURIComponent).join(',')];
    });
    here.set(Object.fromEntries(changes));
  }
}
