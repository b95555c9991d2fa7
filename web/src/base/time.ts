// Times: how long, when, and the ticks of a time axis.

import { dateStyle } from './dateStyle.svelte';

const S = 1000;
const M = 60 * S;
const H = 60 * M;
const D = 24 * H;

const two = (n: number): string => String(n).padStart(2, '0');

/** `4.2 s`, `1 min 23 s`, `2 h 05 min`, `3 d 4 h`. */
export function formatDuration(ms: number): string {
  if (ms < M) return ms < 10 * S ? `${(ms / S).toFixed(1)} s` : `${Math.floor(ms / S)} s`;
  if (ms < H) return `${Math.floor(ms / M)} min ${two(Math.floor((ms % M) / S))} s`;
  if (ms < D) return `${Math.floor(ms / H)} h ${two(Math.floor((ms % H) / M))} min`;
  return `${Math.floor(ms / D)} d ${Math.floor((ms % D) / H)} h`;
}

/** A round length of time in one unit: `200 ms`, `5 s`, `2 h`. */
export function formatWidth(ms: number): string {
  const [size, unit] = ms < S ? [1, 'ms'] : ms < M ? [S, 's'] : ms < H ? [M, 'min'] : ms < D ? [H, 'h'] : [D, 'd'];
  return `${ms / size} ${unit}`;
}

/** Roughly how long ago: `just now`, `5 min ago`, `3 d ago`. */
export function formatAgo(ms: number): string {
  if (ms < 10 * S) return 'just now';
  const [size, unit] = ms < M ? [S, 's'] : ms < H ? [M, 'min'] : ms < D ? [H, 'h'] : [D, 'd'];
  return `${Math.floor(ms / size)} ${unit} ago`;
}

/** The same for a day, given by the time since it began in UTC: `today`, `3 d ago`. */
export const formatDaysAgo = (ms: number): string => (ms < D ? 'today' : formatAgo(ms));

/** Date and time in the user's time zone, to the second: `2026-11-21 09:33:20`, or as the chosen language writes it. */
export function formatMoment(ms: number): string {
  const d = wall(ms);
  if (dateStyle.locale) return inWords(d, { dateStyle: 'medium', timeStyle: 'medium' });
  return `${formatDay(d)} ${formatClock(d, true)}`;
}

/** When a day (`2026-11-21`) begins in the user's time zone. */
export function startOfDay(day: string): number {
  const midnight = Date.parse(`${day}T00:00Z`);
  const guess = midnight - offset(midnight);
  return midnight - offset(guess); // the clock may have been changed between the two
}

const formatDay = (d: Date): string => `${d.getUTCFullYear()}-${two(d.getUTCMonth() + 1)}-${two(d.getUTCDate())}`;
const formatClock = (d: Date, seconds: boolean): string =>
  `${two(d.getUTCHours())}:${two(d.getUTCMinutes())}${seconds ? `:${two(d.getUTCSeconds())}` : ''}`;

/** What clocks in the user's time zone show, as if it were UTC: read it with `getUTC…`. */
const wall = (ms: number): Date => new Date(ms + offset(ms));

/** The user's time zone: how far its clocks are ahead of UTC. */
function offset(ms: number): number {
  if (!dateStyle.timeZone) return -new Date(ms).getTimezoneOffset() * M;
  const fields: Record<string, number> = {};
  for (const { type, value } of parts(dateStyle.timeZone).formatToParts(ms)) fields[type] = Number(value);
  const { year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0 } = fields;
  return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(ms / S) * S;
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** Making a format takes longer than using it, and an axis has many ticks. */
function cached(key: string, make: () => Intl.DateTimeFormat): Intl.DateTimeFormat {
  const format = formats.get(key) ?? make();
  formats.set(key, format);
  return format;
}

const parts = (timeZone: string): Intl.DateTimeFormat =>
  cached(timeZone, () => {
    const numeric = 'numeric' as const;
    return new Intl.DateTimeFormat('en-US', { timeZone, hourCycle: 'h23', year: numeric, month: numeric, day: numeric, hour: numeric, minute: numeric, second: numeric });
  });

/** A date of `wall` as the chosen language writes it. */
const inWords = (d: Date, how: Intl.DateTimeFormatOptions): string =>
  cached(`${dateStyle.locale} ${JSON.stringify(how)}`, () => new Intl.DateTimeFormat(dateStyle.locale, { ...how, timeZone: 'UTC' })).format(d);

/** Time since the start, as precise as a step: `0:05`, `1:30:00`, `2d 06:00`, `0:00.2`. */
export function formatElapsed(ms: number, step = S): string {
  const sign = ms < 0 ? '−' : '';
  const t = Math.abs(ms);
  const days = Math.floor(t / D);
  const hours = Math.floor((t % D) / H);
  const minutes = Math.floor((t % H) / M);
  const seconds = (t % M) / S;
  const sharp = step < S ? seconds.toFixed(step < 10 ? 3 : step < 100 ? 2 : 1) : String(Math.floor(seconds));
  const tail = sharp.split('.')[0]!.length < 2 ? `0${sharp}` : sharp;
  if (days > 0) return `${sign}${days}d ${two(hours)}:${two(minutes)}${step < M ? `:${tail}` : ''}`;
  if (hours > 0) return `${sign}${hours}:${two(minutes)}:${tail}`;
  return `${sign}${minutes}:${tail}`;
}

const STEPS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((n) => n * S),
  ...[1, 2, 5, 10, 15, 30].map((n) => n * M),
  ...[1, 2, 3, 6, 12].map((n) => n * H),
  ...[1, 2, 5, 10, 20, 50, 100].map((n) => n * D),
];

const stepFor = (span: number, count: number): number =>
  STEPS.find((step) => span / step <= count) ?? STEPS[STEPS.length - 1]!;

/** Ticks at round times since `start`, at most about `count`. */
export function elapsedTicks(min: number, max: number, count: number, start: number): number[] {
  return multiples(min - start, max - start, stepFor(max - min, count)).map((t) => t + start);
}

/** Lengths of time, each about ten times as long as the one before. */
const ROUND = [1, 10, 100, S, 10 * S, M, 10 * M, H, 10 * H, D, 10 * D, 100 * D];

/** Ticks of a logarithmic axis: round times since `start`. */
export function logElapsedTicks(min: number, max: number, count: number, start: number): number[] {
  const inside = (times: readonly number[]): number[] => times.filter((time) => time >= min - start && time <= max - start);
  const [round, all] = [inside(ROUND), inside(STEPS)];
  const ticks = round.length > 2 ? round : all;
  if (ticks.length < 2) return elapsedTicks(min, max, count, start);
  const apart = ((max - start) / (min - start)) ** (1 / (count + 1));
  const times: number[] = [];
  for (const time of ticks) if (time >= (times.at(-1) ?? 0) * apart) times.push(time);
  return times.map((time) => time + start);
}

/** Ticks at round times of day in the user's time zone, at most about `count`. */
export function wallTicks(min: number, max: number, count: number): number[] {
  const ahead = offset(min);
  return multiples(min + ahead, max + ahead, stepFor(max - min, count)).map((t) => t - ahead);
}

/** Ticks at round steps of training. */
export function stepTicks(min: number, max: number, count: number): number[] {
  const rough = Math.max(1, (max - min) / Math.max(1, count));
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough - 1e-9)!;
  return multiples(min, max, step);
}

/** Steps as they are, the long ones in thousands or millions. */
export function formatStepTicks(ticks: readonly number[]): string[] {
  const largest = Math.max(...ticks.map(Math.abs));
  const [by, unit] = largest < 1e5 ? [1, ''] : largest < 1e7 ? [1e3, 'k'] : [1e6, 'M'];
  return ticks.map((tick) => `${tick / by}${tick === 0 ? '' : unit}`);
}

const MAX_TICKS = 1000;

function multiples(min: number, max: number, step: number): number[] {
  const ticks: number[] = [];
  const first = Math.ceil(min / step);
  // A bounded number: above 2^53, adding one changes nothing.
  for (let i = 0; i <= MAX_TICKS && (first + i) * step <= max; i++) {
    if ((first + i) * step !== ticks.at(-1)) ticks.push((first + i) * step);
  }
  return ticks;
}

export function formatElapsedTicks(ticks: readonly number[], start: number): string[] {
  return ticks.map((tick) => formatElapsed(tick - start, spacing(ticks)));
}

/** `10 s`, `1 min`, `2 h` where ticks are round times. */
export const formatLogElapsedTicks = (ticks: readonly number[], start: number): string[] =>
  ticks.every((tick) => STEPS.includes(tick - start)) ? ticks.map((tick) => formatWidth(tick - start)) : formatElapsedTicks(ticks, start);

/** Times of day; the date where a new one begins. */
export function formatWallTicks(ticks: readonly number[]): string[] {
  const step = spacing(ticks);
  return ticks.map((tick) => {
    const d = wall(tick);
    const midnight = d.getUTCHours() === 0 && d.getUTCMinutes() === 0 && d.getUTCSeconds() === 0;
    if (step >= D || (midnight && step >= M)) {
      return dateStyle.locale ? inWords(d, { month: 'numeric', day: 'numeric' }) : `${two(d.getUTCMonth() + 1)}-${two(d.getUTCDate())}`;
    }
    if (dateStyle.locale && step >= M) return inWords(d, { timeStyle: 'short' });
    const ms = step < S ? `.${String(d.getUTCMilliseconds()).padStart(3, '0')}` : '';
    return formatClock(d, step < M) + ms;
  });
}

const spacing = (ticks: readonly number[]): number => (ticks.length > 1 ? ticks[1]! - ticks[0]! : S);
