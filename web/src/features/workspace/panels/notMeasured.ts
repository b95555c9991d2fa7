// Why runs have no values of a system metric: what the monitors of their hosts said about its sources.

import type { Source } from '../../../base/api';
import { missing, reasonParts, type Missing } from '../../runs/runText';

/** The sources that measure metrics of a host, by the beginning of the key; the first that fits. */
const SOURCES: readonly (readonly [RegExp, readonly string[]])[] = [
  [/^(cpu|memory|io)\.pressure/, ['pressure']],
  [/^cpu\.(avg_temp|freqMHz)$/, ['thermal', 'apple']],
  [/^(cpu\.powerWatts$|energy\.|power\.)/, ['energy', 'apple']],
  [/^(cpu\.ofLimit$|cgroup\.cpu\.|proc\.cpu\.throttled|proc\.memory\.oomKills$)/, ['cgroup']],
  [/^proc\.memory\.available/, ['memory']],
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
/** Parts of a source that any of its readings may need: programs and libraries. */
const OF_ALL = /^(NVML|programs|[\w-]+-(smi|monitor)|macmon|ioreg|tegrastats|sysfs|exit|driver|devices|reports)$/;

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
  for (const isAbout of [(name: string) => names(metric, name), (name: string) => OF_ALL.test(name)]) {
    const said = lacking.flatMap((source) => partsOf(source.reason).flatMap(([about, reason]) => (about.some(isAbout) ? [{ ...source, reason }] : [])));
    if (said.length > 0) return said;
  }
  return Object.entries(sources).flatMap(([host, byName]) => {
    const here = Object.entries(byName).filter(([name]) => measures(name));
    // Where one source works, such as that of the vendor, it is no reason that others are absent.
    const working = here.filter(([, { state }]) => state === 'on').map(([name]) => ({ host, name, state: 'on', reason: 'it works, but reported no such value' }));
    const failing = lacking.filter((source) => source.host === host && source.state === 'failing');
    if (failing.length > 0 || working.length > 0) return [...failing, ...working];
    return lacking.filter((source) => source.host === host);
  });
}

/** The parts of a reason, with the names that each begins with. */
const partsOf = (reason: string): [names: string[], part: string][] =>
  reasonParts(reason).map((part) => [part.slice(0, Math.max(part.indexOf(': '), 0)).split(', '), part]);

/** A key of a device: its family, number and reading. */
const OF_DEVICE = /^(gpu\.process|gpu|tpu|ipu)\.(\d+|\*)\.(.*)$/;
/** A device, or all of a family. `gpu` is the reading of that name. */
const DEVICE = /^(?:(gpu\.process|tpu|ipu)|(gpu|tpu|ipu)\.(\d+))$/;
/** Keys of file systems, whose paths may have dots: not the beginning of others. */
const WHOLE = /\.(usage(Percent|GB)|availableGB|inodesPercent)$/;

/** Whether a name in a reason names a metric, or what it is derived from. */
function names(metric: string, name: string): boolean {
  const [, family, number, reading] = OF_DEVICE.exec(metric) ?? [];
  if (family !== undefined && number !== undefined && reading !== undefined) {
    const [, all, singleDevice, its] = DEVICE.exec(name) ?? [];
    if (all === family || (singleDevice === family && (number === '*' || number === its))) return true;
    return sources(reading).some((end) => fits(end, name) || fits(`${family}.${number}.${end}`, name) || (family === 'gpu.process' && fits(`process.${end}`, name)));
  }
  // The beginning of keys: `disk./data` of `disk./data.usagePercent`
  return sources(metric).some((key) => fits(key, name) || (!WHOLE.test(name) && [...key.matchAll(/\./g)].some(({ index }) => fits(key, name + key.slice(index)))));
}

/** A key, and those of which it may be a rate. */
const sources = (key: string): string[] => [key, key.replace(/Percent$/, 'Seconds'), key.replace(/^power\./, 'energy.')];

/** Whether a text fits a pattern, in which each `*` stands for any text. A hostile one takes no longer than others. */
function fits(pattern: string, text: string): boolean {
  const [first = '', ...others] = pattern.split('*');
  const last = others.pop();
  if (last === undefined) return text === pattern;
  if (!text.startsWith(first)) return false;
  let end = first.length;
  for (const part of others) {
    const start = text.indexOf(part, end);
    if (start < 0) return false;
    end = start + part.length;
  }
  return text.length - last.length >= end && text.endsWith(last);
}
