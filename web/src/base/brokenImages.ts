// Images that cannot be loaded, wherever texts and pages have them: a small mark with what the image is called. One that
// was given a size keeps it, so that nothing moves.

const NAMELESS = 'image';

/** Errors of images do not bubble, so the window catches them on their way down. */
export function markBrokenImages(): void {
  window.addEventListener(
    'error',
    ({ target }) => {
      if (!(target instanceof HTMLImageElement)) return;
      target.classList.add('broken');
      target.alt ||= NAMELESS;
      target.title ||= `${target.alt}: this image could not be loaded`;
    },
    true,
  );
}
