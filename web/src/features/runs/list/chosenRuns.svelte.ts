// The runs of a project that its charts show. They are in the address, so that a link shows the same.

import { untrack } from 'svelte';
import { here } from '../../../base/route.svelte';
import { claimColours } from '../runColour';

/** The most runs on charts at the same time. */
export const MAX_SELECTED = 100;
/** The newest runs are shown until the user chooses. */
export const FIRST_SHOWN = 10;
const PARAMETER = 'shown';
const NONE = '-';

class ChosenRuns {
  /** What the table lists, in its order. */
  #listed = $state.raw<readonly string[]>([]);
  /** The table has said which runs it lists. */
  isKnown = $state(false);
  #named = $derived(named(here.query.get(PARAMETER)));
  #shown = $derived(this.#named ?? this.#listed.slice(0, FIRST_SHOWN));
  /** The ids of the runs that are shown, at most `MAX_SELECTED`. */
  ids = $derived.by((): readonly string[] => {
    const ids = this.#shown;
    claimColours(ids);
    return ids;
  });
  #set = $derived(new Set(this.ids));
  /** The user chose: new runs do not appear by themselves. */
  isChosen = $derived(this.#named !== null);

  /** The ids that the table lists: the first of them are shown unless the user chose others. */
  offer(ids: readonly string[]): void {
    this.isKnown = true;
    const first = ids.slice(0, FIRST_SHOWN);
    // An effect that offers must not run again because of what it offered.
    const before = untrack(() => this.#listed);
    if (first.length !== before.length || first.some((id, i) => id !== before[i])) this.#listed = first;
  }

  has(id: string): boolean {
    return this.#set.has(id);
  }

  /** Show or hide a run. Returns false if there are too many to show one more. */
  toggle(id: string): boolean {
    if (this.has(id)) this.only(this.#shown.filter((shownId) => shownId !== id));
    else if (this.#shown.length >= MAX_SELECTED) return false;
    else this.only([...this.#shown, id]);
    return true;
  }

  /** Show these runs and no others; more than `MAX_SELECTED` are left out. */
  only(ids: readonly string[]): void {
    here.set({ [PARAMETER]: ids.slice(0, MAX_SELECTED).join(',') || NONE });
  }

  /** Show the first runs of the table again, whichever they are. */
  follow(): void {
    here.set({ [PARAMETER]: null });
  }
}

/** The ids in an address; null: it names none. Ids of runs have no commas. */
function named(text: string | null): string[] | null {
  if (text === null) return null;
  return text === NONE ? [] : [...new Set(text.split(','))].filter(Boolean).slice(0, MAX_SELECTED);
}

export const chosenRuns = new ChosenRuns();
