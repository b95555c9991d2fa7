// Requests of the first view, started while the code of the page is still being loaded.
//
// This is all that the entry of the page has, so it imports little: the addresses here must be those that the page
// requests later, letter by letter. A request that the page does not make in the end costs one response.

import { currentPath, request } from './address';

/** Points of a series on the card of a chart, which is about as wide. */
export const CARD_POINTS = 300;

/** The keys of the charts that are the first on most pages, in several requests: a response is parsed at once. */
export const EARLY_REQUESTS: readonly (readonly string[])[] = [
  ['gpu.*.gpu', 'gpu.*.memoryAllocated'],
  ['gpu.*.memoryAllocatedBytes', 'gpu.*.powerWatts', 'gpu.*.temp'],
  ['cpu', 'cpu.mean', 'cpu.ofLimit', 'proc.memory.percent', 'memory_percent', 'host.memory_percent', 'swap.used_percent'],
];

const started = new Map<string, Promise<Response>>();

/** The addresses that the view of a run requests first; empty for other views, and for guests, whose requests need a header. */
export function earlyAddresses(path: string, query: URLSearchParams): string[] {
  const parts = path.split('/').filter(Boolean);
  const at = parts.indexOf('runs');
  const [id, tab = null, ...more] = parts.slice(at + 1);
  if (!id || more.length > 0 || (at !== 0 && at !== 2) || parts[0] === '-') return [];
  const entity = at === 2 ? parts[0]! : encodeURIComponent(query.get('entity') ?? '');
  const ofEntity = entity && `?entity=${entity}`;
  const run = `/api/v1/runs/${id}`;
  const paths = ['/api/v1/about', run + ofEntity];
  if (tab === null || tab === 'system' || tab === 'charts') paths.push(`${run}/headline${ofEntity}`, `${run}/plan${ofEntity}`);
  if (tab === 'charts') paths.push(`${run}/history/names${ofEntity}`);
  if (tab !== 'system') return paths;
  if (!query.has('from') && !query.has('window') && !query.has('replay') && !query.has('logx')) {
    for (const request of EARLY_REQUESTS) {
      const keys = request.map((key) => `keys=${encodeURIComponent(key)}`).join('&');
      paths.push(`${run}/metrics${ofEntity}${ofEntity ? '&' : '?'}${keys}&max_points=${CARD_POINTS}`);
    }
  }
  return paths;
}

export function startEarly(): void {
  const [about, run, ...rest] = earlyAddresses(currentPath(), new URLSearchParams(window.location.search));
  if (about === undefined || run === undefined) return;
  const [asked, runResponse] = [request(about), request(run)];
  // Of a run that is not there, no values are requested.
  const each = rest.map((address) => [address, address.includes('/metrics?') ? runResponse.then((response) => (response.ok ? request(address) : response.clone())) : request(address)] as const);
  for (const [address, response] of [[about, asked], [run, runResponse], ...each] as const) {
    response.catch(() => undefined); // reported by the request that takes it, if one does
    started.set(address, response);
  }
}

/** What nobody took yet is too old by now. */
export function forgetEarly(): void {
  started.clear();
}

/** The response to an address that was requested early; once, because later requests want newer data. */
export function takeEarly(address: string): Promise<Response> | undefined {
  const response = started.get(address);
  started.delete(address);
  return response;
}
