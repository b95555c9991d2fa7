// Texts about a run: why it ended, its states, missing sources, facts, git, command line, events.

import type { RunDetail, RunEvent, RunRow, Source } from '../../base/api';
import type { Pin } from '../../chart/plot';
import { count, formatValue } from '../../base/units';
import { groupBy } from '../../base/groups';
import { formatAgo, formatMoment } from '../../base/time';
import type { Ending, Json, Rank, Resume } from '../../base/wire';

const SIGNALS: Record<number, string> = {
  1: 'SIGHUP',
  2: 'SIGINT',
  3: 'SIGQUIT',
  4: 'SIGILL',
  6: 'SIGABRT',
  7: 'SIGBUS',
  8: 'SIGFPE',
  9: 'SIGKILL',
  10: 'SIGUSR1',
  11: 'SIGSEGV',
  12: 'SIGUSR2',
  13: 'SIGPIPE',
  14: 'SIGALRM',
  15: 'SIGTERM',
  24: 'SIGXCPU',
  25: 'SIGXFSZ',
};

/** Why a run ended as it did: `exit code 3`, `SIGKILL, out of memory`; empty if it ended normally. */
export function why(ending: Ending): string {
  const words: string[] = [];
  if (ending.signal !== null) words.push(SIGNALS[ending.signal] ?? `signal ${ending.signal}`);
  else if (ending.exit_code !== null && ending.exit_code !== 0) words.push(`exit code ${ending.exit_code}`);
  if (ending.out_of_memory) words.push('out of memory');
  return words.join(', ');
}

/** Whether a user requested the end of a run that has not ended yet. */
export const isStopping = (run: Pick<RunRow, 'state' | 'stop_requested_ms'>): boolean =>
  run.state === 'running' && run.stop_requested_ms !== null;

/** A stop is answered within a few heartbeats of the run's process; records of a live run come more often than this. */
const ANSWERED_MS = 20_000;
const SILENT_MS = 60_000;

/** Why nothing ended a run that a user asked to stop; empty while an answer may still come. `newest`: the time of the newest sample. */
export function whyNotStopped(run: Pick<RunDetail, 'state' | 'stop_requested_ms' | 'tags' | 'hosts' | 'events'>, now: number, newest = 0): string {
  const asked = run.stop_requested_ms;
  if (!isStopping(run) || asked === null || now - asked < ANSWERED_MS) return '';
  const answers = run.events.filter(({ time_ms, host }) => host !== '' && time_ms >= asked);
  const failed = answers.find(({ name }) => name === 'stop_failed');
  if (failed) return failed.text;
  if (answers.some(({ name }) => name === 'stop_requested')) return 'its program was interrupted, as with Ctrl-C, and goes on';
  if (run.tags.includes('simulated')) return 'no process can be reached: the run is simulated';
  const heard = Math.max(newest, ...run.hosts.map(({ last_ms }) => last_ms));
  if (now - heard > SILENT_MS) return `its process cannot be reached: last heard ${formatAgo(now - heard)}`;
  return 'its process did not answer: it sends records without a connection that could stop it, or is too busy';
}

/** What each state means. */
export const STATE_TEXT: Record<string, string> = {
  running: 'The run is in progress, and its monitor is reporting.',
  finished: 'The run ended without an error.',
  failed: 'The run ended with an exit code other than 0.',
  crashed: 'The run was ended by a signal.',
  stopped: 'The run was stopped by a user.',
  lost: 'No end was recorded: the monitor or its machine stopped reporting.',
};

/** Whose run it is: `Ada Lovelace`, `ci`, `Ada Lovelace via ci`; empty if nobody is known. */
export function authorText(run: Pick<RunRow, 'author' | 'service_account'>): string {
  return [run.author?.display_name, run.service_account?.name].filter(Boolean).join(' via ');
}

/** Whether users should notice an event: it is an alert of the program, or something went wrong. */
export const isAlert = ({ level, name }: Pick<RunEvent, 'level' | 'name'>): boolean => level !== 'info' || name === 'alert';

type Told = Pick<RunEvent, 'name' | 'text' | 'data'>;

const titleOf = ({ data }: Told): string => (typeof data.title === 'string' ? data.title : '');

/** What an event is called: the title of an alert, the text of others, else its name. */
export const alertTitle = (event: Told): string => titleOf(event) || event.text || event.name;

/** What an event says besides its title. */
export const alertText = (event: Told): string => (titleOf(event) ? event.text : '');

/** Whether an event says that a finding opened or closed: the card of findings shows these, and charts mark their times. */
export const isFinding = ({ name }: Pick<RunEvent, 'name'>): boolean => name === 'finding';

/** The events to show on charts. */
export const chartPinsOf = (events: readonly RunEvent[]): Pin[] => pinsOf(events.filter((event) => !isFinding(event)));

/** The events to show in a timeline. */
export const pinsOf = (events: readonly RunEvent[]): Pin[] =>
  events
    .filter(isAlert)
    .map(({ time_ms, level, name, text, data }) => ({ x: time_ms, level, text: [data.title, text].filter((part) => typeof part === 'string' && part).join(': ') || name }));

/** Where a training went on after a restart. */
export const resumePinsOf = (resumes: readonly Resume[], byTime: boolean): Pin[] =>
  resumes.map(({ t, step, after_step }) => {
    const back = step <= after_step ? `, back from ${count(after_step)}` : '';
    return { x: byTime ? t : step, level: 'info', text: `resumed at step ${count(step)}${back}, ${formatMoment(t)}` };
  });

export interface Missing {
  host: string;
  name: string;
  state: string;
  reason: string;
}

/**
 * A name in a reason: a key, the beginning or the end of one. Paths, and names with a unit, may have blanks. No text
 * is a name in two ways: then a hostile reason would take exponential time.
 */
const NAME = String.raw`(?:disk\.\/[^:;,]*|(?!disk\.\/)(?:[^\s:;,]+|[^\s:;,()]+(?: [^\s:;,()]+)*(?: \([^\s:;,()]*\))+))`;
const NEXT_PART = new RegExp(`; (?=${NAME}(?:, ${NAME})*: )`);

/** The parts of a reason, such as `powerWatts: not supported; fanSpeed, temp: not permitted`. */
export const reasonParts = (reason: string): string[] => reason.split(NEXT_PART);

/** Whether a source lacks something that its machine has; otherwise there is nothing of the kind, such as swap. */
const lacksSomething = (reason: string): boolean => reasonParts(reason).some((part) => !part.includes(': there is none'));

/** The sources without values or with missing values, and why. */
export function missing(sources: Record<string, Record<string, Source>>): Missing[] {
  const missing: Missing[] = [];
  for (const [host, byName] of Object.entries(sources)) {
    for (const [name, source] of Object.entries(byName)) {
      if (source.state === 'on' && !source.reason) continue;
      const reason = source.reason ?? '';
      const state = source.state === 'on' && lacksSomething(reason) ? 'partial' : (source.state ?? 'unknown');
      missing.push({ host, name, state, reason });
    }
  }
  return missing;
}

/** A name, a text, and the exact value if the text is rounded. */
export type Row = readonly [name: string, text: string, exact?: string];

/** A JSON object as rows with dotted names. */
export function rows(value: Record<string, Json>, prefix = ''): Row[] {
  return Object.entries(value).flatMap(([name, item]): Row[] => {
    if (item !== null && typeof item === 'object' && !Array.isArray(item)) return rows(item, `${prefix}${name}.`);
    if (Array.isArray(item) && item.some((part) => part !== null && typeof part === 'object')) {
      return item.flatMap((part, i) => rows({ [String(i)]: part }, `${prefix}${name}.`));
    }
    const [text, exact] = [jsonText(item), JSON.stringify(item)];
    return [isRounded(item) ? [prefix + name, text, exact] : [prefix + name, text]];
  });
}

/** A JSON object without the fields that are null: facts and settings that are not known or not set. */
export function known(value: Record<string, Json>): Record<string, Json> {
  const fields = Object.entries(value).filter(([, item]) => item !== null);
  return Object.fromEntries(fields.map(([name, item]) => [name, isObject(item) ? known(item) : item]));
}

const isObject = (value: Json): value is Record<string, Json> =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

const isTextList = (value: Json | undefined): value is string[] => Array.isArray(value) && value.every((part) => typeof part === 'string');

/** Rows of a machine's facts: bytes in readable units, the command as a shell shows it. */
export function machineRows(facts: Record<string, Json>): Row[] {
  const settings = Object.fromEntries(
    Object.entries(facts)
      .filter(([name]) => name !== 'packages')
      .map(([name, value]) => [name, name === 'command' && isTextList(value) ? commandText(value) : value]),
  );
  return rows(known(settings)).map((row): Row => {
    const [name, text] = row;
    return /(^|[._])bytes$/.test(name) && /^\d+$/.test(text) ? [name, formatValue(Number(text), 'bytes'), text] : row;
  });
}

/** What is different on each of many equal machines: their names, and the ids of their parts. */
const OWN_FACT = /(^|\.)(uuid|serial|pci|hostname|host|ip|address|boot_id|machine_id|cwd|pid|board_serial)$/;

/** Machines with the same facts together, without what is each one's own if there are several. `rows`: null for facts that are no object. */
export function alikeMachines(machines: Record<string, Record<string, Json>>): { hosts: string[]; rows: Row[] | null }[] {
  const all = Object.entries(machines).map(([host, facts]) => ({ host, rows: isObject(facts) ? machineRows(facts) : null }));
  const shared = (rows: readonly Row[]): Row[] => rows.filter(([name]) => !OWN_FACT.test(name));
  const groups = groupBy(all, ({ host, rows: facts }) => (facts === null ? `unreadable ${host}` : JSON.stringify(shared(facts))));
  return [...groups.values()].map((machines) => ({ hosts: machines.map(({ host }) => host), rows: machines.length > 1 ? shared(machines[0]!.rows ?? []) : machines[0]!.rows }));
}

/** Processes with those that ended otherwise than normally first, in the order in which they ended: the first one may have ended the others. */
export function worstFirst(ranks: readonly Rank[]): Rank[] {
  const isBad = (rank: Rank): boolean => why({ ...rank, state: 'crashed' }) !== '';
  const weight = (rank: Rank): number => (!isBad(rank) ? 2 : rank.out_of_memory || rank.signal === SIGKILL ? 0 : 1);
  return [...ranks].sort((a, b) => weight(a) - weight(b) || (isBad(a) ? (a.ended_ms ?? 0) - (b.ended_ms ?? 0) : 0));
}
const SIGKILL = 9;

/** Names and versions of the Python packages that a run could import. */
export function packageRows(facts: Record<string, Json>): Row[] {
  const { packages } = facts;
  return isObject(packages ?? null) ? rows(packages as Record<string, Json>) : [];
}

/** `main 63651d03ad, with changes`, as far as they are known. */
export function gitText(git: Json | undefined): string {
  if (git === null || typeof git !== 'object' || Array.isArray(git)) return '';
  const { branch, commit, dirty } = git;
  const where = [branch, typeof commit === 'string' ? commit.slice(0, 10) : null].filter((part) => typeof part === 'string');
  return where.join(' ') + (dirty === true && where.length ? ', with changes' : '');
}

const DIGITS = 6;
const roundedNumber = (value: number): number => (Number.isInteger(value) ? value : Number(value.toPrecision(DIGITS)));

function isRounded(value: Json): boolean {
  if (Array.isArray(value)) return value.some(isRounded);
  return typeof value === 'number' && roundedNumber(value) !== value;
}

function jsonText(value: Json): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return value.map(jsonText).join(', ');
  return String(typeof value === 'number' ? roundedNumber(value) : value);
}

/** A command line, quoted for a shell. */
export function commandText(words: readonly string[]): string {
  return words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(' ');
}
