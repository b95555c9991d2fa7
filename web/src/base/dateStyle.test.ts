import { afterEach, describe, expect, it } from 'vitest';
import { dateStyle } from './dateStyle.svelte';
import { dateFormats } from '../features/accounts/preferences';
import { formatMoment, formatWallTicks, startOfDay, wallTicks } from './time';

const H = 3_600_000;
/** In summer, when Berlin is two hours ahead of UTC. */
const SUMMER = Date.UTC(2026, 6, 1, 22, 30, 5);

afterEach(() => dateStyle.set('', ''));

describe('the chosen time zone', () => {
  it('is that of dates', () => {
    dateStyle.set('Europe/Berlin', '');
    expect(formatMoment(SUMMER)).toBe('2026-07-02 00:30:05');
    expect(formatMoment(Date.UTC(2026, 0, 1, 22, 30))).toBe('2026-01-01 23:30:00');
    dateStyle.set('America/St_Johns', '');
    expect(formatMoment(SUMMER + 7)).toBe('2026-07-01 20:00:05');
    dateStyle.set('UTC', '');
    expect(formatMoment(-1)).toBe('1969-12-31 23:59:59');
  });

  it('is that of days', () => {
    dateStyle.set('Europe/Berlin', '');
    expect(startOfDay('2026-07-02')).toBe(Date.UTC(2026, 6, 1, 22));
    expect(startOfDay('2026-01-02')).toBe(Date.UTC(2026, 0, 1, 23));
    expect(startOfDay('2026-03-29'), 'summer time begins that day').toBe(Date.UTC(2026, 2, 28, 23));
    expect(startOfDay('2026-10-25'), 'and ends').toBe(Date.UTC(2026, 9, 24, 22));
  });

  it('is that of axes', () => {
    dateStyle.set('Asia/Kolkata', '');
    const ticks = wallTicks(SUMMER, SUMMER + 4 * H, 4);
    expect(formatWallTicks(ticks)).toEqual(['05:00', '06:00', '07:00', '08:00']);
    expect(formatWallTicks(wallTicks(Date.UTC(2026, 6, 1, 17), Date.UTC(2026, 6, 1, 21), 4))[1]).toBe('07-02');
  });

  it('counts as not chosen where the browser does not know it', () => {
    dateStyle.set('Mars/Olympus', 'xx-not-a-locale-!');
    expect([dateStyle.timeZone, dateStyle.locale]).toEqual(['', '']);
  });
});

describe('the chosen language', () => {
  it('is that of dates and axes', () => {
    dateStyle.set('Europe/Berlin', 'de-DE');
    expect(formatMoment(SUMMER)).toBe('02.07.2026, 00:30:05');
    dateStyle.set('UTC', 'en-US');
    expect(formatMoment(SUMMER).replace(/\s/g, ' ')).toBe('Jul 1, 2026, 10:30:05 PM');
    expect(formatWallTicks([SUMMER, SUMMER + H])[0]!.replace(/\s/g, ' ')).toBe('10:30 PM');
    expect(formatWallTicks([Date.UTC(2026, 6, 1), Date.UTC(2026, 6, 2)])).toEqual(['7/1', '7/2']);
  });

  it('is offered with an example', () => {
    const formats = dateFormats(SUMMER);
    expect(formats[0]![0]).toBe('');
    expect(Object.fromEntries(formats)['de-DE']).toContain('2026');
    expect(new Set(formats.map(([locale]) => locale)).size).toBe(formats.length);
  });

});
