// Why runs have no values of a system metric: what the monitors of their hosts said about its sources.

import type { Source } from '../api';
import { missing, type Missing } from '../runText';

/** The sources that measure metrics of a host, by the beginning of the key; the first that fits. */
const SOURCES: readonly (readonly [RegExp, readonly string[]])[] = [
  [/^(cpu|memory|io)\.pressure/, ['pressure']],
  [/^cpu\.avg_temp$/, ['thermal', 'apple']],
  [/^(cpu\.powerWatts$|energy\.|power\.)/, ['energy', 'apple']],
  [/^(cpu\.ofLimit$|cgroup\.cpu\.|proc\.cpu\.throttled|proc\.memory\.oomKills$)/, ['cgroup']],
  [/^(cpu$|proc\.)/, ['process']],
  [/^cpu\./, ['cpu', 'apple']],
  [/^system\.(load|uptime)/, ['load']],
  [/^(memory|swap|cgroup\.memory|host\.memory)/, ['memory', 'apple']],
  [/^(fan|ane|system)\./, ['apple']],
  [/^disk\..*\.(usage|inodes|available)/, ['filesystem']],
  [/^disk\./, ['disk']],
  [/^network\.(ib|efa)\./, ['infiniband']],
  [/^network\.ena\./, ['ena']],
  [/^network\./, ['network']],
  [/^tpu(\.|$)/, ['tpu']],
  [/^trn\./, ['trainium']],
  [/^ipu\./, ['graphcore']],
  [/^openmetrics\./, ['openmetrics']],
];
/** All others measure GPUs and the like, of one vendor each. */
const NOT_OF_GPUS: ReadonlySet<string> = new Set(SOURCES.flatMap(([, names]) => names.filter((name) => name !== 'apple')));

/** Whether a source measures a metric; null: no source does. */
function sourcesOf(metric: string): ((source: string) => boolean) | null {
  if (metric.startsWith('gpu.')) return (source) => !NOT_OF_GPUS.has(source);
  const names = SOURCES.find(([pattern]) => pattern.test(metric))?.[1];
  return names ? (source) => names.includes(source) : null;
}

/** Why hosts did not measure a metric, as far as it is known. `metric` may have `*` for what differs between devices. */
export function notMeasured(metric: string, sources: Record<string, Record<string, Source>>): Missing[] {
  const measures = sourcesOf(metric);
  if (!measures) return [];
  const lacking = missing(sources).filter(({ name }) => measures(name));
  const said = lacking.flatMap((one) => partsAbout(metric, one.reason).map((reason) => ({ ...one, reason })));
  if (said.length > 0) return said;
  // Where one source works, such as that of the vendor, it is no reason that others are absent.
  const working = new Set(Object.entries(sources).flatMap(([host, byName]) => (Object.entries(byName).some(([name, { state }]) => measures(name) && state === 'on') ? [host] : [])));
  return lacking.filter(({ host, state }) => state === 'failing' || (state !== 'partial' && !working.has(host)));
}

/** The parts of a reason, such as `powerWatts: not supported; fan: not supported`, that are about a metric. */
function partsAbout(metric: string, reason: string): string[] {
  const reading = metric.replace(/^gpu\.[^.]*\./, '');
  return reason.split(/; (?=[^\s:;]+: )/).filter((part) => {
    const about = part.slice(0, part.indexOf(': '));
    return about !== '' && (about === reading || about === metric || metric.startsWith(`${about}.`));
  });
}
