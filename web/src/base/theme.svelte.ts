// Light and dark: as the system says, unless the user chose.

export type Choice = 'system' | 'light' | 'dark';
const CHOICES: readonly string[] = ['system', 'light', 'dark'] satisfies Choice[];
const KEY = 'runvitals.theme';
const system = window.matchMedia('(prefers-color-scheme: dark)');

class Theme {
  choice = $state<Choice>('system');
  #systemDark = $state(system.matches);
  dark = $derived(this.choice === 'dark' || (this.choice === 'system' && this.#systemDark));

  constructor() {
    system.addEventListener('change', (event) => (this.#systemDark = event.matches));
    const kept = localStorage.getItem(KEY) ?? '';
    if (CHOICES.includes(kept)) this.set(kept as Choice);
  }

  set(choice: Choice): void {
    this.choice = choice;
    localStorage.setItem(KEY, choice);
    if (choice === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = choice;
  }

  /** The next one of the three; returns it. */
  next(): Choice {
    this.set(CHOICES[(CHOICES.indexOf(this.choice) + 1) % CHOICES.length] as Choice);
    return this.choice;
  }
}

export const theme = new Theme();
