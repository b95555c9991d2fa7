// What a server of an earlier version cannot do, by the address of the API that it lacks.

const NAMES: readonly (readonly [RegExp, string])[] = [
  [/^overlay\//, 'Charts of several runs'],
  [/^compare/, 'Comparison of runs'],
  [/^hosts/, 'Hosts'],
  [/^runs\/groups/, 'Groups of runs'],
  [/^(runs\/bulk|runs\/[^/]+\/(stop|restore))/, 'Changes of runs'],
  [/^runs\/[^/]+\/media/, 'Media'],
  [/^runs\/[^/]+\/files/, 'Files'],
  [/artifacts/, 'Artifacts'],
  [/^runs\/[^/]+\/console/, 'Output'],
  [/^runs\/[^/]+\/history/, 'Logged values'],
  [/^runs\/[^/]+\/(plan|metrics|series)/, 'Samples'],
  [/^runs\/[^/]+\/differences/, 'What changed in a time range'],
  [/^runs\/[^/]+\/statistics/, 'Statistics of a run'],
  [/^(fields|catalogue|defined-metrics)/, 'Names of metrics and columns'],
  [/^views/, 'Saved views and panels'],
  [/alert|automations|mute/, 'Alerts'],
  [/^(usage|billing)/, 'Usage'],
];

/** Why a request to an address of the API failed that the server does not have. */
export function olderServerText(url: string): string {
  const path = url.replace(/^\/api\/v1\//, '');
  const name = NAMES.find(([pattern]) => pattern.test(path))?.[1];
  return `${name ? `${name}: the` : 'The'} server is older than this page and cannot do this. Reload the page; if that does not help, the server must be updated.`;
}
