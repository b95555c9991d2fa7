// The square part of a picture that is kept. Positions are in pixels of the picture.

export interface Size {
  width: number;
  height: number;
}

/** The middle of the square, and how many times it is smaller than the largest one. */
export interface Crop {
  x: number;
  y: number;
  zoom: number;
}

export const MAX_ZOOM = 8;

const within = (low: number, value: number, high: number): number => Math.min(high, Math.max(low, value));

export const sideOf = ({ width, height }: Size, { zoom }: Crop): number => Math.min(width, height) / zoom;

/** The largest square, around the middle. */
export const largest = ({ width, height }: Size): Crop => ({ x: width / 2, y: height / 2, zoom: 1 });

/** Keep the square within the picture. */
function kept(size: Size, crop: Crop): Crop {
  const zoom = within(1, crop.zoom, MAX_ZOOM);
  const half = sideOf(size, { ...crop, zoom }) / 2;
  return { x: within(half, crop.x, size.width - half), y: within(half, crop.y, size.height - half), zoom };
}

/** Move the square by a part of its side. */
export function moved(size: Size, crop: Crop, right: number, down: number): Crop {
  const side = sideOf(size, crop);
  return kept(size, { ...crop, x: crop.x + right * side, y: crop.y + down * side });
}

export const zoomed = (size: Size, crop: Crop, zoom: number): Crop => kept(size, { ...crop, zoom });

/** The upper left corner and the side of the square. */
export function square(size: Size, crop: Crop): { left: number; top: number; side: number } {
  const side = sideOf(size, crop);
  return { left: crop.x - side / 2, top: crop.y - side / 2, side };
}
