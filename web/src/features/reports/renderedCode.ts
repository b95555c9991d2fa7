// Code in the HTML of a text: formulas become MathML, and programs get their colours. What does it is loaded when it is needed.

import type { Attachment } from 'svelte/attachments';

const MAX_FORMULAS = 200;
/** Longer code stays as it is: colours would take longer than a frame. */
const MAX_CODE = 20_000;

const isFormula = (code: Element): boolean => code.matches('.math, .language-math');

/** Draws formulas and colours code in an element whenever its HTML changes. */
export function renderedCode(html: string): Attachment<HTMLElement> {
  return (element) => {
    void html;
    let gone = false;
    const all = [...element.querySelectorAll<HTMLElement>('code[class]')];
    const formulas = all.filter(isFormula).slice(0, MAX_FORMULAS);
    const programs = all.filter((code) => !isFormula(code) && (code.textContent?.length ?? 0) <= MAX_CODE);
    if (formulas.length > 0) void import('katex').then(({ default: katex }) => void (!gone && formulas.forEach((code) => draw(katex, code))));
    if (programs.length > 0) void import('highlight.js/lib/common').then(({ default: colours }) => void (!gone && programs.forEach((code) => colours.highlightElement(code))));
    return () => void (gone = true);
  };
}

function draw(katex: typeof import('katex').default, code: HTMLElement): void {
  const displayMode = !code.classList.contains('inline');
  const element = document.createElement(displayMode ? 'div' : 'span');
  // MathML alone: KaTeX's HTML has styles in attributes, which the page's policy forbids, and needs fonts.
  katex.render(code.textContent ?? '', element, { output: 'mathml', displayMode, throwOnError: false, trust: false, maxExpand: 200, maxSize: 50, strict: 'ignore' });
  (code.parentElement?.tagName === 'PRE' ? code.parentElement : code).replaceWith(element);
}
