// Formulas in the HTML of a text: `$…$`, and blocks of code of the language `math`, drawn by KaTeX as MathML.

import type { Attachment } from 'svelte/attachments';

const MAX_FORMULAS = 200;

/** Draws formulas in an element whenever its HTML changes. KaTeX is loaded for the first one. */
export function formulas(html: string): Attachment<HTMLElement> {
  return (element) => {
    void html;
    let gone = false;
    void import('katex').then(({ default: katex }) => {
      if (gone) return;
      // MathML alone: KaTeX's HTML has styles in attributes, which the page's policy forbids, and needs fonts.
      const draw = (tex: string, into: HTMLElement, displayMode: boolean): void =>
        katex.render(tex, into, { output: 'mathml', displayMode, throwOnError: false, trust: false, maxExpand: 200, maxSize: 50, strict: 'ignore' });
      let left = MAX_FORMULAS;
      for (const code of element.querySelectorAll<HTMLElement>('code.math, code.language-math')) {
        if (left-- <= 0) break;
        const display = code.classList.contains('block') || code.classList.contains('language-math');
        const shown = document.createElement(display ? 'div' : 'span');
        draw(code.textContent ?? '', shown, display);
        (display && code.parentElement?.tagName === 'PRE' ? code.parentElement : code).replaceWith(shown);
      }
    });
    return () => void (gone = true);
  };
}
