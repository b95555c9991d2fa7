// Boxes and masks over an image, as the SDK stores them: a JSON file beside the image.

import type { RunKey } from '../../../base/api';
import { loadText } from './media';

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
}

export interface Annotations {
  boxes: BoxSet[];
  masks: Mask[];
}

export async function loadAnnotations(run: RunKey, sha256: string, signal: AbortSignal): Promise<Annotations> {
  const found = JSON.parse(await loadText(run, sha256, signal)) as Annotations;
  if (!Array.isArray(found?.boxes) || !Array.isArray(found?.masks)) throw new Error('These are no annotations.');
  return found;
}

/** The color of a class, as the SDK draws it in masks. */
export const classColor = (number: number): string => `hsl(${Math.round(((((number * 0.618034) % 1) + 1) % 1) * 360)} 80% 50%)`;

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
