import { describe, expect, it } from 'vitest';
import { boxLabel, boxPlace, classColor, legend, type BoxSet } from './annotations';

describe('boxes over an image', () => {
  it('places shares of the image and pixels', () => {
    expect(boxPlace({ sides: [0.5, 0.25, 1, 0.5], pixels: false }, 200, 100)).toEqual({ x: 100, y: 25, width: 100, height: 25 });
    expect(boxPlace({ sides: [10, 20, 5, 40], pixels: true }, 200, 100)).toEqual({ x: 10, y: 20, width: 0, height: 20 });
  });

  it('names a box by its caption, else its class', () => {
    const set: BoxSet = { name: 'truth', classes: { 1: 'cat' }, boxes: [] };
    const box = { sides: [0, 0, 1, 1] as [number, number, number, number], pixels: false };
    expect(boxLabel(set, { ...box, class: 1 })).toBe('cat');
    expect(boxLabel(set, { ...box, class: 7 })).toBe('7');
    expect(boxLabel(set, { ...box, class: 1, caption: 'a cat' })).toBe('a cat');
    expect(legend(set)).toEqual([{ name: 'cat', color: classColor(1) }]);
  });

  it('has the colors of the SDK', () => {
    expect([classColor(0), classColor(1), classColor(2)]).toEqual(['hsl(0 80% 50%)', 'hsl(222 80% 50%)', 'hsl(85 80% 50%)']);
  });
});
