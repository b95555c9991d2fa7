// Which parameters the address of each page has: what is not among them is not applied, and the page says so.

import type { Route } from './route.svelte';

/** The values that a parameter takes; null: any. */
type Parameters = Readonly<Record<string, RegExp | null>>;

const NUMBER = /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i;
const FLAG = /^1$/;

/** Of pages with charts. */
const CHARTS: Parameters = {
  from: NUMBER,
  to: NUMBER,
  open: null,
  y: /^(auto|linear|log|symlog|percent)$/,
  smooth: /^\w+:\d+(\.\d+)?$/,
  outliers: /^aside$/,
  mode: /^(heatmap|band|lines)$/,
  sort: /^outlier$/,
  marks: /^off$/,
};
/** Of charts by name. */
const BY_NAME = /^(chart|zoom)\./;

const HOSTS: Parameters = { q: null, state: /^(running|lost|ended|,)+$/, flag: /^(lost|throttled|hot|idle|,)+$/, sort: /^(name|attention|use|power|temperature|last_ms)$/, rows: /^devices$/, after: null };
const RUNS: Parameters = {
  q: null,
  state: null,
  author: null,
  columns: null,
  sort: null,
  order: /^(up|down)$/,
  pinned: null,
  by: null,
  expanded: null,
  trash: FLAG,
  total: null,
  widths: null,
  after: null,
  page: null,
  entity: null,
};
const RUN: Parameters = {
  ...CHARTS,
  entity: null,
  charts: null,
  x: /^(step|elapsed|wall|defined|metric:.+)$/s,
  window: /^\d+$/,
  host: null,
  rank: /^\d{1,6}$/,
  device: /^\d{1,6}$/,
  by: /^(node|rank|device)$/,
  logx: FLAG,
  names: /^mlflow$/,
  changes: FLAG,
  steps: /^-?[\d.e+-]+~-?[\d.e+-]+$/i,
  replay: NUMBER,
  speed: NUMBER,
  finding: null,
  q: null,
  regex: FLAG,
  context: /^(0|2|5|10|20)$/,
  level: null,
  alerts: null,
  events: /^all$/,
  version: null,
};

/** By page; those that are not here have parameters of several views, and are not checked. */
const PAGES: Partial<Record<Route['page'], Parameters>> = {
  home: { guide: FLAG },
  runs: RUNS,
  run: RUN,
  hosts: HOSTS,
  host: { range: /^(1h|24h|7d|30d)$/, zoom: /^\d+-\d+$/ },
};

/** The parameters of an address that are not applied, each with why. */
export function notApplied(page: Route['page'], query: URLSearchParams): { name: string; why: string }[] {
  const parameters = PAGES[page];
  if (!parameters) return [];
  const ignored = [...new Set(query.keys())].flatMap((name) => {
    if (!Object.hasOwn(parameters, name)) return BY_NAME.test(name) && 'open' in parameters ? [] : [{ name, why: 'this page has no such parameter' }];
    const [pattern, value] = [parameters[name], query.get(name)!];
    return !pattern || pattern.test(value) ? [] : [{ name, why: `“${value.slice(0, 40)}” is no value of it` }];
  });
  for (const [name, other] of [['from', 'to'], ['to', 'from']] as const) {
    if (name in parameters && query.has(name) && !query.has(other)) ignored.push({ name, why: `it needs “${other}” too` });
  }
  return ignored;
}

/** The parameters of a page, for the test that compares them with what the sources read. */
export const parametersOf = (page: Route['page']): readonly string[] => Object.keys(PAGES[page] ?? {});
