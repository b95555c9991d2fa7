// Numbers with their units, as people read them: binary prefixes for bytes, decimal ones for the rest.

import { own } from './own';

interface Scale {
  /** Divide a value by this … */
  by: number;
  /** … and write this behind it. */
  unit: string;
}

/** A rung is used from its factor on, or from where it says. */
type Ladder = [factor: number, unit: string, from?: number][];

const KIB = 1024;
const BYTES: Ladder = [
  [1, 'B'],
  [KIB, 'KiB'],
  [KIB ** 2, 'MiB'],
  [KIB ** 3, 'GiB'],
  [KIB ** 4, 'TiB'],
  [KIB ** 5, 'PiB'],
];
const perSecond = (ladder: Ladder): Ladder => ladder.map(([factor, unit, from]) => [factor, `${unit}/s`, from]);
const decimal = (unit: string, first = 0): Ladder =>
  (['', 'k', 'M', 'G', 'T'] as const).slice(first).map((prefix, i) => [1000 ** i, prefix + unit]);
const PLAIN: Ladder = [
  [1, ''],
  [1e3, 'k', 1e4],
  [1e6, 'M'],
  [1e9, 'G'],
  [1e12, 'T'],
];
const SECONDS: Ladder = [
  [1e-6, 'µs'],
  [1e-3, 'ms'],
  [1, 's'],
  [60, 'min'],
  [3600, 'h'],
  [86400, 'd'],
];

/** By the catalogue's unit: what one of it is on a ladder of units. */
const LADDERS: Record<string, { one: number; ladder: Ladder }> = {
  '1': { one: 1, ladder: PLAIN },
  '1/s': { one: 1, ladder: perSecond(PLAIN) },
  bytes: { one: 1, ladder: BYTES },
  /** Bytes where limits and prices are in GB of 10⁹ bytes. */
  B: { one: 1, ladder: decimal('B') },
  MiB: { one: KIB ** 2, ladder: BYTES },
  GiB: { one: KIB ** 3, ladder: BYTES },
  'bytes/s': { one: 1, ladder: perSecond(BYTES) },
  'MiB/s': { one: KIB ** 2, ladder: perSecond(BYTES) },
  'bit/s': { one: 1, ladder: decimal('bit/s') },
  'Mb/s': { one: 1e6, ladder: decimal('bit/s') },
  MHz: { one: 1e6, ladder: decimal('Hz') },
  W: { one: 1, ladder: decimal('W') },
  Wh: { one: 1, ladder: decimal('Wh') },
  J: { one: 1, ladder: decimal('J') },
  mJ: { one: 1e-3, ladder: decimal('J') },
  s: { one: 1, ladder: SECONDS },
  ms: { one: 1e-3, ladder: SECONDS },
  'µs': { one: 1e-6, ladder: SECONDS },
};

/** How to write values of a unit whose largest is `largest`. */
export function scaleFor(unit: string, largest: number): Scale {
  const scale = own(LADDERS, unit);
  if (!scale) return { by: 1, unit: unit === '1' ? '' : unit };
  const { one, ladder } = scale;
  const size = Math.abs(largest) * one;
  // A zero or a tiny value stays in the unit it was given in, where the ladder has that rung.
  let rung = ladder.find(([factor]) => factor === one) ?? ladder[0]!;
  for (const step of ladder) {
    if (size >= (step[2] ?? step[0]) && (step[0] > rung[0] || size < rung[0])) rung = step;
  }
  if (size > 0 && size < rung[0]) rung = ladder[0]!;
  return { by: rung[0] / one, unit: rung[1] };
}

function digits(value: number): string {
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e6 || size < 1e-3)) return value.toPrecision(3).replace(/\.?0+(?=e|$)/, '');
  const decimals = size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
  const text = value.toFixed(decimals);
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

const attached = (unit: string): string => (/^(%|k|M|G|T|[kMGT]?\/s)?$/.test(unit) ? unit : ` ${unit}`);

/** `12.3 GiB`, `98.7%`, `1.98 GHz`; a dash for nothing. */
export function formatValue(value: number | null | undefined, unit: string): string {
  if (value === null || value === undefined || Number.isNaN(value)) return '–';
  const scale = scaleFor(unit, value);
  return digits(value / scale.by) + attached(scale.unit);
}

/** Ticks of an axis: all in the unit of the largest, with as many places as their distance needs. */
export function formatTicks(ticks: readonly number[], unit: string): string[] {
  if (ticks.length === 0) return [];
  const scale = scaleFor(unit, Math.max(...ticks.map(Math.abs)));
  const scaled = ticks.map((tick) => tick / scale.by);
  const step = scaled.length > 1 ? Math.abs(scaled[1]! - scaled[0]!) : Math.abs(scaled[0]!);
  let decimals = 0;
  while (decimals < 6 && step > 0 && Math.abs(step - Number(step.toFixed(decimals))) > step * 1e-6) decimals++;
  return scaled.map((value) => (Math.abs(value) < 1e-12 ? '0' : value.toFixed(decimals)) + attached(scale.unit));
}

const STEPS = [1, 2, 2.5, 5, 10];
const ENDS = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10];

/** The smallest round number that is not below `value`. */
export function niceCeil(value: number, nice: readonly number[] = STEPS): number {
  if (value <= 0) return 0;
  const power = 10 ** Math.floor(Math.log10(value));
  return nice.find((n) => n * power >= value * (1 - 1e-9))! * power;
}

/** About `count` round ticks between two values, round in the unit that is shown. */
const MAX_TICKS = 100;

export function valueTicks(min: number, max: number, count: number, unit: string): number[] {
  if (!(max > min)) return [min];
  const { by } = scaleFor(unit, Math.max(Math.abs(min), Math.abs(max)));
  const step = niceCeil((max - min) / by / Math.max(1, count));
  const ticks: number[] = [];
  const first = Math.ceil(min / by / step - 1e-9) + 0;
  // A bounded number: where neighbouring numbers are further apart than the step, adding one changes nothing.
  for (let i = 0; i <= MAX_TICKS && (first + i) * step <= max / by + step * 1e-9; i++) {
    const tick = (first + i) * step * by;
    if (tick !== ticks.at(-1)) ticks.push(tick);
  }
  return ticks;
}

/** The range of a value axis: from zero where that tells more than it hides, percent to 100 unless all is small. */
export function valueRange(low: number | null, high: number | null, unit: string): [number, number] {
  if (low === null || high === null || !Number.isFinite(low) || !Number.isFinite(high)) return [0, 1];
  if (unit === '%' && low >= 0 && high > 20) return [0, Math.max(100, niceCeil(high, ENDS))];
  const { by } = scaleFor(unit, high);
  if (low >= 0 && (low <= high * 0.6 || high === 0)) return [0, niceCeil((high * 1.02) / by, ENDS) * by || 1];
  const span = high - low || Math.abs(high) * 0.1;
  return [low >= 0 ? Math.max(0, low - span * 0.15) : low - span * 0.15, high + span * 0.15];
}

/** `12,345`. */
export const count = (number: number): string => number.toLocaleString('en-US');

/** `1 run`, `12,345 runs`. */
export const counted = (number: number, noun: string): string => `${count(number)} ${noun}${number === 1 ? '' : 's'}`;
