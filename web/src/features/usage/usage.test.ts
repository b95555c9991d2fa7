import { describe, expect, it } from 'vitest';
import { amount, dayBars, daysOf, nameOf, OTHERS, shifted, type UsageRow } from './usage';

const row = (day: string, team: string, device_hours: number): UsageRow => ({ day, team, device_hours }) as UsageRow;

describe('bars of days', () => {
  it('has a bar for each day, the largest group first', () => {
    const rows = [row('2026-11-01', 'a', 1), row('2026-11-01', 'b', 5), row('2026-11-03', 'a', 2)];
    const bars = dayBars(rows, 'team', 'device_hours', '2026-11-01', '2026-11-03');
    expect(bars.map((bar) => bar.total)).toEqual([6, 0, 2]);
    expect(bars[0]!.parts.map((part) => [part.name, part.slot])).toEqual([
      ['b', 0],
      ['a', 1],
    ]);
  });

  it('puts what has no colour of its own together', () => {
    const rows = Array.from({ length: 10 }, (_, number) => row('2026-11-01', `team${number}`, 10 - number));
    const [bar] = dayBars(rows, 'team', 'device_hours', '2026-11-01', '2026-11-01');
    expect(bar!.parts.at(-1)).toEqual({ name: OTHERS, value: 4 + 3 + 2 + 1, slot: 6 });
  });
});

it('says what a group without a name is', () => {
  expect(nameOf({ team: null } as UsageRow, 'team')).toBe('no team');
  expect(nameOf({ team: 'vision', project: null } as UsageRow, 'project')).toBe('no project (vision)');
  expect(nameOf({ team: 'vision', project: 'digits' } as UsageRow, 'project')).toBe('vision/digits');
});

it('goes from month to month', () => {
  expect([shifted('2026-12', 1), shifted('2026-01', -1)]).toEqual(['2027-01', '2025-12']);
  expect(daysOf('2026-10-24', '2026-10-26')).toHaveLength(3);
});

it('shows what is not known as a dash, not as zero', () => {
  expect(amount(null)).toBe('–');
});
