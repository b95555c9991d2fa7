// How dates and times are shown: the user's choice, else ISO dates in the browser's time zone.

class DateStyle {
  /** Such as `Europe/Berlin`; empty: the browser's. */
  timeZone = $state('');
  /** Such as `de-DE`; empty: `2026-11-21 09:33`. */
  locale = $state('');

  /** What this browser does not know counts as not chosen. */
  set(timeZone: string, locale: string): void {
    this.timeZone = isKnown(undefined, timeZone) ? timeZone : '';
    this.locale = locale && isKnown(locale, '') ? locale : '';
  }
}

function isKnown(locale: string | undefined, timeZone: string): boolean {
  try {
    new Intl.DateTimeFormat(locale, timeZone ? { timeZone } : {});
    return true;
  } catch {
    return false;
  }
}

export const dateStyle = new DateStyle();
