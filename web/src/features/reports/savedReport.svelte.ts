// A report that is being written: saves what the user changes, and takes in what others change.

import { ApiError, get, reasonOf, send, sendBriefly } from '../../base/api';
import type { MergedReport, ReportEdit, ReportEditing } from '../../base/wire';
import { reversed, undone } from './earlierEdits';
import { rebased, type BlockConflict, type Resolution } from './rebase';
import { newId } from '../../base/ids';
import { isSame, reportPath, type Block, type ListedReport, type ReportSchema } from './reports';

/** What the user sees of a report, and changes. */
export interface Working {
  title: string;
  description: string;
  blocks: Block[];
}

const QUIET_MS = 1500;
const RETRY_MS = 5000;
const OTHERS_MS = 10_000;
const MAX_EDITS = 100;

export class SavedReport {
  state = $state<'saved' | 'changed' | 'saving' | 'failed' | 'conflict'>('saved');
  error = $state('');
  conflicts = $state.raw<readonly BlockConflict[]>([]);
  report = $state.raw<ReportSchema>() as ReportSchema;
  /** Somebody else saved the report while it was open here. */
  others = $state(false);
  /** Who else is editing it at the moment. */
  editors = $state.raw<ReportEditing['editors']>([]);
  /** What `undo` undoes next comes first; null: the server knows. */
  #edits: ReportEdit[] | null = null;
  #undone: ReportEdit[] = [];
  #showing = false;
  #base: Working;
  #theirs: { revision: number; working: Working } | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #watch: ReturnType<typeof setInterval>;
  #saving: Promise<void> | null = null;

  /** `working`: what the user sees now; `showWorking`: shows other blocks. */
  constructor(
    report: ReportSchema,
    private readonly working: () => Working,
    private readonly showWorking: (working: Working) => void,
  ) {
    this.report = report;
    this.#base = { title: report.title, description: report.description, blocks: report.blocks };
    this.#watch = setInterval(this.#look, OTHERS_MS);
    document.addEventListener('visibilitychange', this.#look);
    this.#look();
  }

  close(): void {
    clearTimeout(this.#timer);
    clearInterval(this.#watch);
    document.removeEventListener('visibilitychange', this.#look);
    // Who does not hear of it sees it end by itself.
    sendBriefly('DELETE', reportPath(this.report.id, '/editing')).catch(() => undefined);
  }

  /** The user changed something. */
  changed(): void {
    if (!this.#showing) [this.#edits, this.#undone] = [null, []];
    this.#noteChange();
  }

  #noteChange(): void {
    if (this.state === 'conflict') return;
    if (isSame(this.working(), this.#base)) {
      if (this.state === 'changed') this.state = 'saved';
      return;
    }
    if (this.state !== 'saving') this.state = 'changed';
    this.#later(QUIET_MS);
  }

  /** Save now; returns whether everything is saved. */
  async save(): Promise<boolean> {
    clearTimeout(this.#timer);
    while (this.#saving) await this.#saving; // others may wait for the same
    if (this.state === 'conflict') return false;
    this.#saving = this.#save();
    await this.#saving;
    this.#saving = null;
    return this.state === 'saved';
  }

  /** Show what is saved to the readers. */
  async publish(): Promise<void> {
    if (!(await this.save())) throw new Error(this.error || 'The report is not saved yet.');
    const listed = await send<ListedReport>('POST', reportPath(this.report.id, '/publish'), { revision: this.report.revision });
    this.report = { ...this.report, ...listed };
  }

  /** Do something on the server that changes the working copy itself, and show what it made of it. */
  async changedBy(work: () => Promise<unknown>): Promise<void> {
    if (!(await this.save())) throw new Error(this.error || 'The report is not saved yet.');
    await work();
    [this.#edits, this.#undone] = [null, []];
    await this.#read();
  }

  /** Undo the user's last edit of those that are saved, also in earlier sessions; returns whether there was one. */
  async undo(): Promise<boolean> {
    if (this.#edits === null) {
      if (!(await this.save())) throw new Error(this.error || 'The report is not saved yet.');
      this.#edits = (await get<{ edits: ReportEdit[] }>(reportPath(this.report.id, '/edits'), { limit: MAX_EDITS })).edits;
    }
    return this.#step(this.#edits, this.#undone);
  }

  /** Do again what `undo` undid; returns whether there was something. */
  redo(): boolean {
    return this.#step(this.#undone, (this.#edits ??= []));
  }

  /** Undo the first edit that still has an effect, and keep what does it again. */
  #step(from: ReportEdit[], to: ReportEdit[]): boolean {
    for (let edit = from.shift(); edit; edit = from.shift()) {
      const next = undone(this.working(), edit);
      if (!next) continue;
      this.#show(next);
      to.unshift(reversed(edit));
      this.#noteChange();
      return true;
    }
    return false;
  }

  /** Go on with what the user chose of the blocks that both changed. */
  resolve(choices: ReadonlyMap<string, Resolution>): void {
    const theirs = this.#theirs;
    if (!theirs) return;
    const mine = this.working();
    const choose = (id: string): Resolution => choices.get(id) ?? 'mine';
    const pick = (name: 'title' | 'description'): string =>
      mine[name] === this.#base[name] || (theirs.working[name] !== this.#base[name] && choose(name) === 'theirs') ? theirs.working[name] : mine[name];
    const blocks = rebased(this.#base.blocks, theirs.working.blocks, mine.blocks, choose, newId);
    const next = { title: pick('title'), description: pick('description'), blocks };
    this.#base = theirs.working;
    this.report = { ...this.report, revision: theirs.revision };
    [this.#theirs, this.conflicts, this.state] = [null, [], 'changed'];
    this.#show(next);
    this.#later(0);
  }

  #show(working: Working): void {
    this.#showing = true;
    this.showWorking(working);
    this.#showing = false;
  }

  #later(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.save(), ms);
  }

  async #save(): Promise<void> {
    const sent = this.working();
    if (isSame(sent, this.#base)) {
      this.state = 'saved';
      return;
    }
    this.state = 'saving';
    try {
      const saved = await send<MergedReport>('PATCH', reportPath(this.report.id), { revision: this.report.revision, ...sent });
      this.#take(saved, sent);
      this.error = '';
      if (saved.others.length > 0) this.others = true;
    } catch (problem) {
      this.#failed(problem);
    }
  }

  /** Take in what was stored: the user may have gone on writing meanwhile. */
  #take(saved: ReportSchema, sent: Working): void {
    const stored: Working = { title: saved.title, description: saved.description, blocks: saved.blocks };
    const mine = this.working();
    const blocks = rebased(sent.blocks, stored.blocks, mine.blocks, () => 'mine', newId);
    if (!isSame(blocks, mine.blocks)) this.#show({ ...mine, blocks });
    this.#base = stored;
    this.report = saved;
    this.state = isSame(this.working(), stored) ? 'saved' : 'changed';
    if (this.state === 'changed') this.#later(QUIET_MS);
  }

  #failed(problem: unknown): void {
    this.error = reasonOf(problem);
    if (problem instanceof ApiError && problem.status === 409) {
      const { revision, conflicts, current } = problem.body as unknown as { revision: number; conflicts: BlockConflict[]; current: Working };
      this.#theirs = { revision, working: current };
      this.conflicts = conflicts;
      this.state = 'conflict';
      return;
    }
    this.state = 'failed';
    if (!(problem instanceof ApiError) || problem.passing) this.#later(RETRY_MS);
  }

  /** Show what the server has, if the user has changed nothing; returns whether it is newer. */
  async #read(): Promise<boolean> {
    const now = await get<ReportSchema>(reportPath(this.report.id), { draft: 'true' });
    if (now.revision <= this.report.revision || this.state !== 'saved') return false;
    this.report = now;
    this.#base = { title: now.title, description: now.description, blocks: now.blocks };
    this.#show(this.#base);
    return true;
  }

  readonly #look = (): void => void this.#lookForOthers();

  /** Say that the user is here, and look for others. What they saved appears here while the user writes nothing. */
  async #lookForOthers(): Promise<void> {
    if (document.hidden) return;
    try {
      const { revision, editors } = await sendBriefly<ReportEditing>('PUT', reportPath(this.report.id, '/editing'));
      this.editors = editors;
      if (revision > this.report.revision && this.state === 'saved' && (await this.#read())) this.others = true;
    } catch {
      // The next save says what is wrong.
    }
  }
}
