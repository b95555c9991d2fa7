import { describe, expect, it } from 'vitest';
import { deviceText, FLAGS, hottest, memoryText, paramsOf, powerOf, toggled, wantedOf, worst, type Device } from './hosts';

const device = (about: Partial<Device> = {}): Device => ({
  kind: 'gpu',
  index: '3',
  model: null,
  memory_bytes: null,
  use: null,
  memory: null,
  memory_used_bytes: null,
  power: null,
  power_limit: null,
  temperature: null,
  in_use: null,
  runs: [],
  flags: [],
  ...about,
});

describe('a device in words', () => {
  it('says what is known', () => {
    const known = device({ use: 87.4, memory_used_bytes: 2 ** 30, memory_bytes: 80 * 2 ** 30, power: 410, power_limit: 700, temperature: 67, flags: ['idle'] });
    expect(deviceText(known)).toBe('GPU 3: 87% used, memory 1 GiB of 80 GiB, 410 W of 700 W, 67 °C, idle');
  });

  it('does not take absent for zero', () => {
    expect(deviceText(device())).toBe('GPU 3: use not known');
    expect(memoryText(device())).toBe('–');
    expect(memoryText(device({ memory: 12.3 }))).toBe('12%');
    expect(powerOf([device(), device({ power: 7 })])).toBe(7);
    expect(powerOf([device()])).toBeNull();
    expect(hottest([device(), device({ temperature: 40 })])).toBe(40);
    expect(hottest([])).toBeNull();
  });
});

describe('the list of hosts in the address', () => {
  it('ignores what is invalid', () => {
    const filter = wantedOf(new URLSearchParams('q=a&state=lost,none&flag=idle&sort=colour&rows=devices'));
    expect(filter).toEqual({ words: 'a', states: ['lost'], flags: ['idle'], sort: 'name', devices: true, after: null });
    expect(paramsOf(filter)).toMatchObject({ text: 'a', state: ['lost'], flag: ['idle'], after: null });
  });

  it('adds and removes flags in a fixed order', () => {
    expect(toggled(FLAGS, ['idle'], 'lost')).toBe('lost,idle');
    expect(toggled(FLAGS, ['lost', 'idle'], 'idle')).toBe('lost');
  });

  it('colours by what is worst', () => {
    expect(worst(['idle', 'hot'])).toBe('hot');
    expect(worst([])).toBeNull();
  });
});
