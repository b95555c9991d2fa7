import { describe, expect, it } from 'vitest';
import type { Finding } from '../../base/wire';
import { costText, evidenceText, rangeOf, spanText, subjectText } from './findings';

const FINDING: Finding = {
  id: 'straggler',
  severity: 'warning',
  confidence: 'likely',
  from_ms: 1_000_000,
  to_ms: 3_100_000,
  share: 0.57,
  hosts: ['node0'],
  devices: [3],
  ranks: [3],
  text: 'GPU 3 differs from the others.',
  evidence: [],
  cost: { device_hours: 1.234, money: null },
  advice: 'Compare it.',
  docs: 'reference/findings.md#straggler',
};

describe('a finding', () => {
  it('names its devices, and its hosts where a run has several', () => {
    expect(subjectText(FINDING, 1)).toBe('device 3');
    expect(subjectText(FINDING, 4)).toBe('device 3 of node0');
    expect(subjectText({ ...FINDING, devices: [0, 1, 2, 3, 4, 5], hosts: ['a', 'b', 'c'] }, 4)).toBe('6 devices of 3 hosts');
    expect(subjectText({ ...FINDING, devices: [] }, 1)).toBe('');
  });

  it('tells how long it held, or since when it goes on', () => {
    expect(spanText(FINDING, 9e9)).toBe('for 35 min 00 s');
    expect(spanText({ ...FINDING, to_ms: null }, 1_000_000 + 720_000)).toBe('since 12 min 00 s');
  });

  it('tells what it cost, if it cost anything', () => {
    expect(costText(FINDING)).toBe('1.2 device-hours lost');
    expect(costText({ ...FINDING, cost: { device_hours: 1234.5, money: 99.5 } })).toBe('1,235 device-hours lost, 99.50 in money');
    expect(costText({ ...FINDING, cost: { device_hours: 0, money: null } })).toBe('');
  });

  it('shows evidence with its unit, and what is normal', () => {
    expect(evidenceText({ key: 'gpu.3.smClock', host: 'node0', value: 1110, unit: 'MHz', normal: 1980 })).toBe('1,110 MHz, normally 1,980');
    expect(evidenceText({ key: 'proc.memory.oomKills', host: 'node0', value: 1, unit: '1', normal: null })).toBe('1');
  });

  it('has a range of time with room around it', () => {
    expect(rangeOf(FINDING, 0)).toEqual({ min: 1_000_000 - 210_000, max: 3_100_000 + 210_000 });
  });
});
