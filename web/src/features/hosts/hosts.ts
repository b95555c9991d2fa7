// Hosts and their devices: what the API answers, and how it is written.

import type { Params, Value } from '../../base/api';
import { formatValue } from '../../base/units';
import type { FleetDevice } from '../../base/wire';

export const FLAGS = ['lost', 'throttled', 'hot', 'idle'] as const;
export type Flag = (typeof FLAGS)[number];
export const HOST_STATES = ['running', 'lost', 'ended'] as const;
export type HostState = (typeof HOST_STATES)[number];
export const SORTS = ['name', 'attention', 'use', 'power', 'temperature', 'last_ms'] as const;
export type Sort = (typeof SORTS)[number];
export const PAGE_SIZE = 100;

export type Device = FleetDevice;

/** What each flag means, with its threshold: the rules are the server's. */
export const FLAG_TEXT: Record<Flag, string> = {
  lost: 'The newest run here stopped reporting without an end.',
  throttled: 'Heat or the power brake lowered the clocks for more than 5% of the last 10 minutes.',
  hot: '85 °C or more.',
  idle: 'A run has it, but used less than 5% of it in the mean of the last 15 minutes.',
};

export const STATE_TEXT: Record<HostState, string> = {
  running: 'A run is on it.',
  lost: FLAG_TEXT.lost,
  ended: 'Its newest run has ended.',
};

/** Which hosts are listed: the address as state. */
export interface Wanted {
  words: string;
  states: HostState[];
  flags: Flag[];
  sort: Sort;
  /** A row for each device instead of each host. */
  devices: boolean;
  after: string | null;
}

const chosen = <T extends string>(all: readonly T[], text: string | null): T[] => all.filter((choice) => (text ?? '').split(',').includes(choice));

/** The list that an address describes; invalid values are ignored. */
export function wantedOf(query: URLSearchParams): Wanted {
  return {
    words: query.get('q') ?? '',
    states: chosen(HOST_STATES, query.get('state')),
    flags: chosen(FLAGS, query.get('flag')),
    sort: SORTS.find((sort) => sort === query.get('sort')) ?? 'name',
    devices: query.get('rows') === 'devices',
    after: query.get('after'),
  };
}

/** The same as parameters of `/hosts`. */
export const paramsOf = (filter: Wanted): Params => ({
  text: filter.words.trim() || null,
  state: filter.states,
  flag: filter.flags,
  sort: filter.sort,
  limit: PAGE_SIZE,
  after: filter.after,
});

/** A text with one of these names added or removed, for the address. */
export const toggled = <T extends string>(all: readonly T[], now: readonly T[], choice: T): string =>
  all.filter((each) => now.includes(each) !== (each === choice)).join(',');

export const isFiltered = (filter: Wanted): boolean => filter.words.trim() !== '' || filter.states.length > 0 || filter.flags.length > 0;

/** `GPU 3`. */
export const deviceName = ({ kind, index }: { kind: string; index: string | number }): string => `${kind === 'trn' ? 'core' : kind.toUpperCase()} ${index}`;

const percent = (value: number): string => formatValue(Math.round(value), '%');

/** `32.1 GiB of 80 GiB`, `40%`, or a dash. */
export function memoryText(device: Device): string {
  if (device.memory_used_bytes !== null) {
    const used = formatValue(device.memory_used_bytes, 'bytes');
    return device.memory_bytes === null ? used : `${used} of ${formatValue(device.memory_bytes, 'bytes')}`;
  }
  return device.memory === null ? '–' : percent(device.memory);
}

/** `412 W of 700 W`. */
export const powerText = ({ power, power_limit }: Device): string =>
  power === null ? '–' : power_limit === null ? formatValue(power, 'W') : `${formatValue(power, 'W')} of ${formatValue(power_limit, 'W')}`;

/** All about a device in one line, for those who cannot see its cell. */
export function deviceText(device: Device): string {
  const parts = [device.use === null ? 'use not known' : `${percent(device.use)} used`];
  if (device.memory !== null || device.memory_used_bytes !== null) parts.push(`memory ${memoryText(device)}`);
  if (device.power !== null) parts.push(powerText(device));
  if (device.temperature !== null) parts.push(formatValue(device.temperature, '°C'));
  if (device.in_use === false) parts.push('no run uses it');
  return `${deviceName(device)}: ${[...parts, ...device.flags].join(', ')}`;
}

/** What stands out most, for the colour of a cell; null: nothing does. */
export const worst = (flags: readonly Flag[]): Flag | null => FLAGS.find((flag) => flags.includes(flag)) ?? null;

/** The whole power of a host; null if no device reports it. */
export function powerOf(devices: readonly Device[]): Value {
  const watts = devices.map(({ power }) => power).filter((power): power is number => power !== null);
  return watts.length ? watts.reduce((sum, power) => sum + power, 0) : null;
}

/** The highest temperature of a host's devices. */
export function hottest(devices: readonly Device[]): Value {
  const temperatures = devices.map(({ temperature }) => temperature).filter((value): value is number => value !== null);
  return temperatures.length ? Math.max(...temperatures) : null;
}
