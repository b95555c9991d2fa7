// Boxes and masks over an image. The SDK stores them as a JSON file beside the image; W&B's client as a file of each set.

import type { RunKey } from '../../../base/api';
import { guestCopy, loadText, type MediaItem, type Overlay } from './media';

export interface Box {
  /** Left, upper, right, lower: shares of the image, or pixels. */
  sides: [number, number, number, number];
  pixels: boolean;
  class?: number;
  caption?: string;
}

interface Named {
  name: string;
  classes: Record<string, string>;
}

export interface BoxSet extends Named {
  boxes: Box[];
}

export interface Mask extends Named {
  sha256: string;
  /** The picture in the colors of its classes, where the file itself has their numbers. */
  picture?: string;
}

export interface Annotations {
  boxes: BoxSet[];
  masks: Mask[];
}

export async function loadAnnotations(run: RunKey, item: MediaItem, signal: AbortSignal): Promise<Annotations> {
  if (!item.annotations) return loadOverlays(run, item.overlays ?? [], signal);
  const annotations = JSON.parse(await loadText(run, item.annotations, signal)) as Annotations;
  if (!Array.isArray(annotations?.boxes) || !Array.isArray(annotations?.masks)) throw new Error('These are no annotations.');
  return annotations;
}

async function loadOverlays(run: RunKey, overlays: Overlay[], signal: AbortSignal): Promise<Annotations> {
  const of = (kind: Overlay['kind']): Overlay[] => overlays.filter((overlay) => overlay.kind === kind);
  const boxes = of('boxes').map(async ({ name, sha256 }) => ({ name, ...wandbBoxes(JSON.parse(await loadText(run, sha256, signal)) as WandbBoxes) }));
  const masks = of('masks').map(async ({ name, sha256 }) => ({ name, sha256, ...(await coloredMask(run, sha256, signal)) }));
  return { boxes: await Promise.all(boxes), masks: await Promise.all(masks) };
}

interface WandbBoxes {
  box_data?: {
    position?: { minX: number; minY: number; maxX: number; maxY: number } | { middle: [number, number]; width: number; height: number };
    class_id?: number;
    box_caption?: string;
    domain?: string;
  }[];
  class_labels?: Record<string, string>;
}

/** A file of boxes of W&B's client. Boxes without a place are left out. */
export function wandbBoxes(file: WandbBoxes): Omit<BoxSet, 'name'> {
  const boxes = (file.box_data ?? []).flatMap(({ position, class_id, box_caption, domain }): Box[] => {
    if (!position) return [];
    const sides: Box['sides'] =
      'middle' in position
        ? [
            position.middle[0] - position.width / 2,
            position.middle[1] - position.height / 2,
            position.middle[0] + position.width / 2,
            position.middle[1] + position.height / 2,
          ]
        : [position.minX, position.minY, position.maxX, position.maxY];
    return sides.every(Number.isFinite) ? [{ sides, pixels: domain === 'pixel', class: class_id, caption: box_caption }] : [];
  });
  return { classes: file.class_labels ?? {}, boxes };
}

async function coloredMask(run: RunKey, sha256: string, signal: AbortSignal): Promise<{ picture: string; classes: Record<string, string> }> {
  const copy = await guestCopy(run, sha256, signal);
  try {
    const image = new Image();
    image.src = copy;
    await image.decode();
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
    const context = canvas.getContext('2d');
    if (context === null) throw new Error('The browser cannot draw the mask.');
    context.drawImage(image, 0, 0);
    const pixels = context.getImageData(0, 0, canvas.width, canvas.height);
    const numbers = colorClasses(pixels.data);
    context.putImageData(pixels, 0, 0);
    return { picture: canvas.toDataURL(), classes: Object.fromEntries(numbers.map((number) => [number, String(number)])) };
  } finally {
    URL.revokeObjectURL(copy);
  }
}

/** Replace the numbers of a mask, which are its gray tones, by the colors of their classes; returns the numbers. */
export function colorClasses(pixels: Uint8ClampedArray): number[] {
  const classes = new Set<number>();
  const palette = Array.from({ length: 256 }, (_, number) => [...classRgb(number), number === 0 ? 32 : 255]);
  for (let i = 0; i < pixels.length; i += 4) {
    const number = pixels[i] ?? 0;
    classes.add(number);
    pixels.set(palette[number] ?? [], i);
  }
  return [...classes].sort((a, b) => a - b);
}

const classHue = (number: number): number => (((number * 0.618034) % 1) + 1) % 1;

function classRgb(number: number): [number, number, number] {
  const part = (shift: number): number => {
    const k = (shift + classHue(number) * 12) % 12;
    return Math.round(255 * (0.5 - 0.4 * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return [part(0), part(8), part(4)];
}

/** The color of a class, as the SDK draws it in masks. */
export const classColor = (number: number): string => `hsl(${Math.round(classHue(number) * 360)} 80% 50%)`;

export const boxLabel = (set: BoxSet, box: Box): string => box.caption ?? (box.class === undefined ? '' : (set.classes[box.class] ?? String(box.class)));

/** A box in pixels: its place, and a size of at least zero. */
export function boxPlace(box: Box, width: number, height: number): { x: number; y: number; width: number; height: number } {
  const [x, y] = box.pixels ? [1, 1] : [width, height];
  const [left, upper, right, lower] = box.sides;
  return { x: left * x, y: upper * y, width: Math.max(0, (right - left) * x), height: Math.max(0, (lower - upper) * y) };
}

/** The classes of a mask or of boxes, for the legend: at most 30. */
export const legend = (named: Named): { name: string; color: string }[] =>
  Object.entries(named.classes)
    .slice(0, 30)
    .map(([number, name]) => ({ name, color: classColor(Number(number)) }));
