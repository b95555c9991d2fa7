// The statistics that the server keeps for each run, so that lists can be filtered and sorted by them.

export interface Statistic {
  /** The column, field and name in filters. */
  name: string;
  unit: string;
  text: string;
}

/** As `QUANTITIES` of the server: name, unit, whether it is a total, what it is. */
const QUANTITIES: readonly [name: string, unit: string, total: boolean, text: string][] = [
  ['cpu', '%', false, "CPU use of the run's processes"],
  ['host_cpu', '%', false, 'CPU use of the hosts'],
  ['memory', '%', false, 'Memory use of the hosts'],
  ['process_memory', 'MiB', false, "Resident memory of the run's processes"],
  ['gpu', '%', false, 'GPU use'],
  ['gpu_memory', '%', false, 'Used share of the GPU memory'],
  ['gpu_memory_bytes', 'bytes', false, 'Used memory of one GPU'],
  ['gpu_power', 'W', false, 'Power of one GPU'],
  ['gpu_temperature', '°C', false, 'Temperature of the GPUs'],
  ['tpu', '%', false, 'TPU duty cycle'],
  ['trn', '%', false, 'Use of Neuron cores'],
  ['energy', 'Wh', true, 'Energy of all GPUs of the run'],
];

const STATISTICS: ReadonlyMap<string, Statistic> = new Map(
  QUANTITIES.flatMap(([name, unit, total, text]): [string, Statistic][] => {
    const of = (suffix: string, text: string): [string, Statistic] => [`system.${name}${suffix}`, { name: `system.${name}${suffix}`, unit, text }];
    return total ? [of('', `${text}, total`)] : [of('', `${text}, mean`), of('.max', `${text}, highest`), of('.min', `${text}, lowest`)];
  }),
);

export const SYSTEM_STATISTICS: readonly Statistic[] = [...STATISTICS.values()];

export const statistic = (name: string): Statistic | undefined => STATISTICS.get(name);

/** Other spellings, such as the key of the metric, are the server's to know. */
export const isStatistic = (name: string): boolean => STATISTICS.has(name.replace(/\.mean$/, ''));
