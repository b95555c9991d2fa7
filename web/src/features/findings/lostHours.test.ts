import { expect, it } from 'vitest';
import { hoursText, moneyText, shareOf } from './lostHours';

it.each([
  [0, '0 h'],
  [0.004, '< 0.01 h'],
  [0.24, '0.24 h'],
  [1.25, '1.3 h'],
  [12.4, '12 h'],
  [1234.5, '1,235 h'],
])('%d hours are %s', (hours, text) => {
  expect(hoursText(hours)).toBe(text);
});

it('tells amounts with their currency', () => {
  expect(moneyText(1234.5, 'EUR')).toBe('1,234.50 EUR');
  expect(moneyText(3, null)).toBe('3.00');
});

it('draws bars of the longest one', () => {
  expect(shareOf(5, 10)).toBe('50.0%');
  expect(shareOf(0.001, 10)).toBe('0.5%');
  expect(shareOf(0, 0)).toBe('0%');
});
