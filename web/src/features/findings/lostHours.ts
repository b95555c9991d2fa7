// Lost device-hours as the page shows them.

/** How many past days the page offers. */
export const LOST_DAYS = [
  ['1', 'day'],
  ['7', '7 days'],
  ['30', '30 days'],
  ['90', '90 days'],
] as const;

/** Device-hours with as many digits as tell them apart: `0.24 h`, `12 h`, `1,234 h`. */
export function hoursText(hours: number): string {
  const text = hours > 0 && hours < 0.01 ? '< 0.01' : hours < 10 ? String(Number(hours.toPrecision(2))) : Math.round(hours).toLocaleString('en');
  return `${text} h`;
}

/** An amount of the organisation's currency; `null`: of a price that was asked for. */
export const moneyText = (amount: number, currency: string | null): string => `${amount.toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 })}${currency === null ? '' : ` ${currency}`}`;

/** The width of a bar: of the longest one, and never so short that it cannot be seen. */
export const shareOf = (hours: number, most: number): string => `${most <= 0 ? 0 : Math.max(0.5, (100 * hours) / most).toFixed(1)}%`;
