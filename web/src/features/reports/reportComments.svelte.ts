// The comments on the report that is shown.

import { get, send } from '../../base/api';
import type { NewReportComment, ReportComment, ReportCommentsPage } from '../../base/wire';
import { threadsOf } from './comments';
import { reportPath } from './reports';

const PAGE = 200;
/** So many are shown. */
const MAX_PAGES = 10;
const POLL_MS = 30_000;

export class ReportComments {
  all = $state.raw<readonly ReportComment[]>([]);
  threads = $derived(threadsOf(this.all));
  #path: string;
  #timer: ReturnType<typeof setInterval>;
  /** Counts what `all` was set from: an answer from before the last change is dropped. */
  #changes = 0;

  constructor(report: number) {
    this.#path = reportPath(report, '/comments');
    void this.load();
    this.#timer = setInterval(() => void (document.hidden || this.load()), POLL_MS);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async load(): Promise<void> {
    const comments: ReportComment[] = [];
    const change = ++this.#changes;
    let after: string | null = null;
    for (let page = 0; page < MAX_PAGES; page++) {
      const answer: ReportCommentsPage = await get<ReportCommentsPage>(this.#path, { limit: PAGE, after });
      comments.push(...answer.comments);
      after = answer.next;
      if (after === null) break;
    }
    if (change === this.#changes) this.all = comments;
  }

  async add(comment: NewReportComment): Promise<void> {
    const added = await send<ReportComment>('POST', this.#path, comment);
    this.#changes += 1;
    this.all = [...this.all.filter(({ id }) => id !== added.id), added];
  }

  async change(comment: ReportComment, text: string): Promise<void> {
    this.#replace(await send<ReportComment>('PATCH', `${this.#path}/${comment.id}`, { text }));
  }

  async remove(comment: ReportComment): Promise<void> {
    await send('DELETE', `${this.#path}/${comment.id}`);
    await this.load();
  }

  async resolve(comment: ReportComment, resolved: boolean): Promise<void> {
    await send(resolved ? 'PUT' : 'DELETE', `${this.#path}/${comment.id}/resolved`);
    await this.load();
  }

  async react(comment: ReportComment, emoji: string): Promise<void> {
    const mine = comment.reactions.some((reaction) => reaction.emoji === emoji && reaction.mine);
    await send(mine ? 'DELETE' : 'PUT', `${this.#path}/${comment.id}/reactions/${encodeURIComponent(emoji)}`);
    await this.load();
  }

  #replace(changed: ReportComment): void {
    this.#changes += 1;
    this.all = this.all.map((comment) => (comment.id === changed.id ? changed : comment));
  }
}
