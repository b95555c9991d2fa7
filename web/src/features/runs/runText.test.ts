import type { RunDetail } from '../../base/api';
import type { Json, Rank } from '../../base/wire';
import { describe, expect, it } from 'vitest';
import { whyNotStopped, alertText, alertTitle, authorText, commandText, gitText, isAlert, isStopping, known, machineRows, missing, packageRows, pinsOf, reasonParts, rows, why, alikeMachines, worstFirst } from './runText';

const ending = { state: 'crashed', exit_code: null, signal: null, out_of_memory: null } as const;

describe('why a run ended', () => {
  it.each([
    [{ ...ending, signal: 9, out_of_memory: true }, 'SIGKILL, out of memory'],
    [{ ...ending, signal: 99 }, 'signal 99'],
    [{ ...ending, exit_code: 3 }, 'exit code 3'],
    [{ ...ending, exit_code: 0 }, ''],
  ])('%j: %s', (how, text) => expect(why(how)).toBe(text));
});

it('a run is stopping from the request to its end', () => {
  expect(isStopping({ state: 'running', stop_requested_ms: null })).toBe(false);
  expect(isStopping({ state: 'running', stop_requested_ms: 1 })).toBe(true);
  expect(isStopping({ state: 'stopped', stop_requested_ms: 1 })).toBe(false);
});

describe('why a run was not stopped', () => {
  const running = { state: 'running', stop_requested_ms: 1000, tags: [], hosts: [{ last_ms: 60_000 }], events: [] } as unknown as RunDetail;
  const event = (name: string, host: string, time_ms = 2000): RunDetail['events'][number] => ({ name, host, time_ms, text: 'not permitted' }) as RunDetail['events'][number];
  it.each([
    ['an answer may come', running, 15_000, ''],
    ['it ended', { ...running, state: 'stopped' }, 60_000, ''],
    ['nobody asked', { ...running, stop_requested_ms: null }, 60_000, ''],
    ['simulated', { ...running, tags: ['simulated'] }, 60_000, 'no process can be reached: the run is simulated'],
    ['silent', running, 240_000, 'its process cannot be reached: last heard 3 min ago'],
    ['not connected', running, 60_000, 'its process did not answer: it sends records without a connection that could stop it, or is too busy'],
    ['interrupted', { ...running, events: [event('stop_requested', 'node1')] }, 60_000, 'its program was interrupted, as with Ctrl-C, and goes on'],
    ['an older answer', { ...running, tags: ['simulated'], events: [event('stop_requested', 'node1', 500), event('stop_requested', '')] }, 60_000, 'no process can be reached: the run is simulated'],
    ['not permitted', { ...running, events: [event('stop_requested', 'node1'), event('stop_failed', 'node1')] }, 60_000, 'not permitted'],
  ])('%s', (_, run, now, why) => expect(whyNotStopped(run as RunDetail, now)).toBe(why));
});

it('missing sources are those that are not on, or only partial, with the reason', () => {
  const sources = {
    node1: {
      cpu: { state: 'on' },
      thermal: { state: 'on', reason: 'cpu.avg_temp: no sensor' },
      memory: { state: 'on', reason: 'swap.used: there is none: no swap' },
      nvidia: { state: 'absent', reason: 'no driver' },
    },
  };
  expect(missing(sources)).toEqual([
    { host: 'node1', name: 'thermal', state: 'partial', reason: 'cpu.avg_temp: no sensor' },
    { host: 'node1', name: 'memory', state: 'on', reason: 'swap.used: there is none: no swap' },
    { host: 'node1', name: 'nvidia', state: 'absent', reason: 'no driver' },
  ]);
});

it('a reason has parts, each with the names of what is missing', () => {
  expect(reasonParts('fanSpeed, memoryTemp: not supported (GPU 1); not permitted (GPU 2); disk./mnt/TV Series: not answering; NVML: cannot be loaded; use nvidia-smi')).toEqual([
    'fanSpeed, memoryTemp: not supported (GPU 1); not permitted (GPU 2)',
    'disk./mnt/TV Series: not answering',
    'NVML: cannot be loaded; use nvidia-smi',
  ]);
  expect(reasonParts('temp: no; ipu utilisation (session) (%), speed (GT/s): not reported')).toHaveLength(2);
});

it.each(['disk./a (b), ', 'a (b), ', 'a b (c) (d), ', 'a, ', '; a', 'a '])('a hostile reason of many %j does not take exponential time', (part) => {
  expect(reasonParts(`x: y; ${part.repeat(2000)}`).join('; ')).toBe(`x: y; ${part.repeat(2000)}`);
});

it('rows are dotted names with texts', () => {
  expect(rows({ lr: 0.1, model: { depth: 2, sizes: [1, 2] }, disks: [{ name: 'vda' }], none: null })).toEqual([
    ['lr', '0.1'],
    ['model.depth', '2'],
    ['model.sizes', '1, 2'],
    ['disks.0.name', 'vda'],
    ['none', 'null'],
  ]);
});

it('numbers have six digits, and the exact value beside them', () => {
  expect(rows({ loss: 0.12345678901234568, seed: 1234567890, lr: [0.1, 0.30000000000000004] })).toEqual([
    ['loss', '0.123457', '0.12345678901234568'],
    ['seed', '1234567890'],
    ['lr', '0.1, 0.3', '[0.1,0.30000000000000004]'],
  ]);
});

it('packages are rows of their own', () => {
  const facts = { user: 'ada', packages: { numpy: '2.4.6', 'ruamel.yaml': '0.18' } };
  expect(machineRows(facts)).toEqual([['user', 'ada']]);
  expect(packageRows(facts)).toEqual([['numpy', '2.4.6'], ['ruamel.yaml', '0.18']]);
  expect([packageRows({}), packageRows({ packages: 'many' })]).toEqual([[], []]);
});

it('settings that are not set and facts that are not known are left out', () => {
  expect(known({ server: null, project: 'digits', gpu: { name: null, count: 0 } })).toEqual({
    project: 'digits',
    gpu: { count: 0 },
  });
  expect(machineRows({ cpu: { model: null, count: 4 } })).toEqual([['cpu.count', '4']]);
});

it('bytes of a machine are in readable units', () => {
  expect(machineRows({ memory: { total_bytes: 25_276_514_304 }, bytes: 'many' })).toEqual([
    ['memory.total_bytes', '23.5 GiB', '25276514304'],
    ['bytes', 'many'],
  ]);
  expect(machineRows({ command: ['python', 'train.py', '--note', 'two words'] })).toEqual([
    ['command', "python train.py --note 'two words'"],
  ]);
});

it('git is a branch and a commit, as far as they are known', () => {
  expect(gitText({ branch: 'main', commit: '63651d03adc094851739', dirty: true })).toBe('main 63651d03ad, with changes');
  expect(gitText({ commit: '63651d03' })).toBe('63651d03');
  expect(gitText(undefined)).toBe('');
});

it('a command is quoted where it must be', () => {
  expect(commandText(['python', 'train.py', '--name', "it's"])).toBe("python train.py --name 'it'\\''s'");
});

it('says whose a run is', () => {
  const author = { id: 1, name: 'ada', display_name: 'Ada Lovelace', picture: null };
  const service_account = { id: 2, name: 'ci', deleted: false };
  expect(authorText({ author, service_account: null })).toBe('Ada Lovelace');
  expect(authorText({ author, service_account })).toBe('Ada Lovelace via ci');
  expect(authorText({ author: null, service_account })).toBe('ci');
  expect(authorText({ author: null, service_account: null })).toBe('');
});

it('alerts and what went wrong are pinned to charts, with their titles', () => {
  const event = { time_ms: 5, name: 'alert', level: 'info', text: 'at step 3', host: 'a', rank: 0, data: { title: 'loss fell' }, author: null, service_account: null };
  expect(
    pinsOf([event, { ...event, name: 'attach', text: '' }, { ...event, name: 'gap', level: 'warning', text: '', data: { title: 7 } }]),
  ).toEqual([
    { x: 5, level: 'info', text: 'loss fell: at step 3' },
    { x: 5, level: 'warning', text: 'gap' },
  ]);
});

describe('alerts', () => {
  const event = { name: 'alert', level: 'info', text: 'at step 7', data: { title: 'loss diverged' } };

  it('have a title and a text', () => {
    expect([alertTitle(event), alertText(event)]).toEqual(['loss diverged', 'at step 7']);
    expect([alertTitle({ ...event, data: {} }), alertText({ ...event, data: {} })]).toEqual(['at step 7', '']);
    expect(alertTitle({ name: 'gap', text: '', data: { title: 5 } })).toBe('gap');
  });

  it('are those of the program, and what went wrong', () => {
    expect([event, { name: 'marker', level: 'info' }, { name: 'gap', level: 'warning' }].map(isAlert)).toEqual([true, false, true]);
  });
});

describe('many machines and processes', () => {
  it('are one if they are equal but for their own ids', () => {
    const machine = (uuid: string, model = 'H100'): Record<string, Json> => ({ nvidia: [{ name: model, uuid }], memory: { total_bytes: 1024 } });
    const groups = alikeMachines({ a: machine('GPU-1'), b: machine('GPU-2'), c: machine('GPU-3', 'A100') });
    expect(groups.map(({ hosts, rows }) => [hosts, rows!.some(([name]) => name.endsWith('uuid'))])).toEqual([
      [['a', 'b'], false],
      [['c'], true],
    ]);
  });

  it('come in the order of what may have ended the others', () => {
    const rank = (number: number, more: Partial<Rank>): Rank => ({ rank: number, local_rank: null, world_size: null, host: 'a', pid: number, exit_code: null, signal: null, out_of_memory: false, ended_ms: null, ...more }) as Rank;
    const ranks = [rank(0, {}), rank(1, { signal: 15, ended_ms: 9 }), rank(2, { signal: 9, out_of_memory: true, ended_ms: 8 }), rank(3, { exit_code: 0, ended_ms: 9 }), rank(4, { signal: 15, ended_ms: 7 })];
    expect(worstFirst(ranks).map((rank) => rank.rank)).toEqual([2, 4, 1, 0, 3]);
  });
});
