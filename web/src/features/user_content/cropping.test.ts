import { describe, expect, it } from 'vitest';
import { largest, MAX_ZOOM, moved, square, zoomed } from './cropping';

const WIDE = { width: 800, height: 400 };
const TALL = { width: 300, height: 900 };

describe('the part of a picture', () => {
  it('is the largest square around the middle at first', () => {
    expect(square(WIDE, largest(WIDE))).toEqual({ left: 200, top: 0, side: 400 });
    expect(square(TALL, largest(TALL))).toEqual({ left: 0, top: 300, side: 300 });
  });

  it('moves by parts of its side, and stays within the picture', () => {
    const start = largest(WIDE);
    expect(square(WIDE, moved(WIDE, start, 0.25, 0)).left).toBe(300);
    expect(square(WIDE, moved(WIDE, start, 5, 5))).toEqual({ left: 400, top: 0, side: 400 });
    expect(square(TALL, moved(TALL, largest(TALL), -1, -9))).toEqual({ left: 0, top: 0, side: 300 });
  });

  it('zooms around its middle, and stays within the picture', () => {
    expect(square(WIDE, zoomed(WIDE, largest(WIDE), 2))).toEqual({ left: 300, top: 100, side: 200 });
    const corner = moved(WIDE, zoomed(WIDE, largest(WIDE), 4), 9, 9);
    expect(square(WIDE, corner)).toEqual({ left: 700, top: 300, side: 100 });
    expect(square(WIDE, zoomed(WIDE, corner, 1))).toEqual({ left: 400, top: 0, side: 400 });
  });

  it('has limits of zoom', () => {
    expect(zoomed(WIDE, largest(WIDE), 0.1).zoom).toBe(1);
    expect(zoomed(WIDE, largest(WIDE), 1000).zoom).toBe(MAX_ZOOM);
  });
});
