// The choices of the preferences page.

/** Languages of dates, besides ISO. */
const LOCALES = ['en-GB', 'en-US', 'de-DE', 'es-ES', 'fr-FR', 'it-IT', 'nl-NL', 'pl-PL', 'pt-BR', 'tr-TR', 'uk-UA', 'ja-JP', 'ko-KR', 'zh-CN'];

/** Formats of dates with an example each. The first is the default. */
export function dateFormats(now: number): [locale: string, text: string][] {
  const names = new Intl.DisplayNames('en', { type: 'language' });
  const example = (locale: string): string => new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short' }).format(now);
  return [['', 'ISO 8601: 2026-11-21 14:05'], ...LOCALES.map((locale): [string, string] => [locale, `${names.of(locale)}: ${example(locale)}`])];
}
