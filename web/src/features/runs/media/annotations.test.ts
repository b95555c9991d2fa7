import { describe, expect, it } from 'vitest';
import { boxLabel, boxPlace, classColor, colorClasses, legend, wandbBoxes, type BoxSet } from './annotations';

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

  it('reads the boxes of W&B\'s client', () => {
    const file = {
      box_data: [
        { position: { minX: 0, minY: 0.1, maxX: 1, maxY: 0.5 }, class_id: 1, box_caption: 'a' },
        { position: { middle: [10, 20] as [number, number], width: 4, height: 6 }, domain: 'pixel' },
        {},
      ],
      class_labels: { 1: 'cat' },
    };
    expect(wandbBoxes(file)).toEqual({
      classes: { 1: 'cat' },
      boxes: [
        { sides: [0, 0.1, 1, 0.5], pixels: false, class: 1, caption: 'a' },
        { sides: [8, 17, 12, 23], pixels: true, class: undefined, caption: undefined },
      ],
    });
  });

  it('colors the numbers of a mask of W&B\'s client', () => {
    const pixels = new Uint8ClampedArray([1, 1, 1, 255, 0, 0, 0, 255, 1, 1, 1, 255]);
    expect(colorClasses(pixels)).toEqual([0, 1]);
    expect([...pixels]).toEqual([25, 85, 230, 255, 230, 25, 25, 32, 25, 85, 230, 255]);
  });
});
