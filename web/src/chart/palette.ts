// Colours of lines. All palettes suit any colour vision and can be read on white and on black.

import type { SeriesInfo } from '../base/api';
import { groupBy } from '../base/groups';
import { seriesId } from './points';

export const PALETTES = ['standard', 'okabe-ito', 'tol-bright'] as const;
export type PaletteName = (typeof PALETTES)[number];

export const PALETTE_NAMES: Record<PaletteName, string> = {
  standard: 'Standard, ten colours',
  'okabe-ito': 'Okabe–Ito, eight colours',
  'tol-bright': 'Tol bright, seven colours',
};

/** Each for light and for dark pages: yellows are darkened on white, blues are lightened on black. */
const COLORS: Record<PaletteName, { light: readonly string[]; dark: readonly string[] }> = {
  standard: {
    light: ['#2f6fd0', '#d9730d', '#12897b', '#c13c5e', '#7a56c7', '#5d8a13', '#a0522d', '#0f84b0', '#b0449c', '#7a6a00'],
    dark: ['#6ea3f5', '#f0993e', '#3fbfae', '#f0708f', '#a78bf0', '#9cc04a', '#d08a62', '#4fb6de', '#de7fcd', '#c4b045'],
  },
  'okabe-ito': {
    light: ['#0072b2', '#c47f00', '#009e73', '#d55e00', '#b85a8f', '#3392c4', '#8a7f00', '#333333'],
    dark: ['#4fa3d9', '#e69f00', '#2fc296', '#ef7a2a', '#dd9cc0', '#56b4e9', '#f0e442', '#d0d0d0'],
  },
  'tol-bright': {
    light: ['#4477aa', '#ee6677', '#228833', '#998a1d', '#3c9fc4', '#aa3377', '#777777'],
    dark: ['#7ba4cf', '#ee6677', '#4bb25d', '#ccbb44', '#66ccee', '#d566a4', '#bbbbbb'],
  },
};

/** The colour of a slot: the same for the same slot, independent of the other lines. */
export function lineColor(slot: number, dark: boolean, palette: PaletteName): string {
  const colors = COLORS[palette][dark ? 'dark' : 'light'];
  return colors[slot % colors.length]!;
}

/** How many colours a palette has. */
export const paletteSize = (palette: PaletteName): number => COLORS[palette].light.length;

/** How the second, third and fourth line of the same colour are dashed. */
const DASHES: readonly number[][] = [[], [7, 4], [2, 3], [9, 3, 2, 3]];

/** How the line of a slot is dashed where colours repeat; empty: it is solid. */
export const dashOf = (slot: number, palette: PaletteName): number[] => DASHES[Math.floor(slot / paletteSize(palette)) % DASHES.length]!;

export function translucent(color: string, alpha: number): string {
  return `${color}${Math.round(alpha * 255)
    .toString(16)
    .padStart(2, '0')}`;
}

const compareNaturally = new Intl.Collator('en', { numeric: true }).compare;

/** Each text with its place in natural order. */
const placesOf = (texts: Iterable<string>): Map<string, number> =>
  new Map([...new Set(texts)].sort(compareNaturally).map((text, rank) => [text, rank]));

/** The number of the device in a key; null if the key names none, or one without a number. */
export function deviceOf(series: Pick<SeriesInfo, 'key' | 'template'>): number | null {
  const names = series.template.split('.');
  const index = names.findIndex((name) => name.startsWith('{'));
  const part = index < 0 || names.length !== series.key.split('.').length ? '' : series.key.split('.')[index]!;
  return /^\d+$/.test(part) ? Number(part) : null;
}

/**
 * The slot of each series of a run, by `seriesId`. It follows from all series of its chart, so that filters change no
 * colours: a device has that of its number, and where a chart compares hosts only, a host has that of its place.
 */
export function slotsOf(series: readonly SeriesInfo[]): Map<string, number> {
  const hosts = placesOf(series.map((item) => item.host));
  const slots = new Map<string, number>();
  for (const members of groupBy(series, (item) => `${item.chart}\n${item.unit}`).values()) {
    const keys = placesOf(members.map((member) => member.key));
    const roles = placesOf(members.map((member) => member.role));
    const templates = new Set(members.map((member) => member.template)).size;
    for (const member of members) {
      const device = templates === 1 ? deviceOf(member) : null;
      const inHost = (device ?? keys.get(member.key)!) * roles.size + roles.get(member.role)!;
      slots.set(seriesId(member), hosts.get(member.host)! * keys.size * roles.size + inHost);
    }
  }
  return slots;
}
