// The state of a form that is sent to the server: busy, done, or what is wrong and beside which field.

import { tick } from 'svelte';
import { asApiError, type FieldErrors } from './api';

export class Submission {
  busy = $state(false);
  /** What is wrong with the whole; errors of fields are in `fields`. */
  error = $state('');
  fields = $state.raw<FieldErrors>({});
  #reason = '';

  /** Do the work; true if it was done. Otherwise the form keeps what was typed and shows why not. */
  async run(work: () => Promise<unknown>): Promise<boolean> {
    this.busy = true;
    this.clear();
    try {
      await work();
      return true;
    } catch (problem) {
      this.fail(problem);
      return false;
    } finally {
      this.busy = false;
    }
  }

  fail(problem: unknown): void {
    const error = asApiError(problem);
    this.fields = error.fields;
    this.#reason = error.message;
    this.error = Object.keys(error.fields).length > 0 ? '' : error.message;
  }

  clear(): void {
    this.error = '';
    this.fields = {};
  }

  /** The handler of a form's submit event. `ondone`: after the work was done. */
  on(work: () => Promise<unknown>, ondone?: () => void): (event: SubmitEvent) => void {
    return (event) => {
      event.preventDefault();
      const form = event.currentTarget as HTMLFormElement;
      if (this.busy) return;
      void this.run(work).then((done) => (done ? ondone?.() : this.#showErrors(form)));
    };
  }

  /** Move the focus to the first field with an error. An error of a field that the form lacks concerns the whole. */
  async #showErrors(form: HTMLFormElement): Promise<void> {
    await tick();
    const invalid = form.querySelector<HTMLElement>('[aria-invalid=true]');
    if (invalid) invalid.focus();
    else this.error = this.#reason;
  }
}
