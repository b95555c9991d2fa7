"""News about reports: who is notified that one was published or commented on, and how."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from runvitals.server.access.decisions.directory import Directory
from runvitals.server.alerts.settings import due_ms, personal_alerts, zone_named
from runvitals.server.alerts.texts import one_line
from runvitals.server.events.automation_events import REPORT_COMMENTED, REPORT_PUBLISHED
from runvitals.server.events.outbox import Notification
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.organisation.settings import with_defaults
from runvitals.server.reports.audience import mentioned_readers, readers_of
from runvitals.server.reports.document import Document
from runvitals.server.reports.report_ids import slug_of
from runvitals.server.reports.storage.comments import CommentRow
from runvitals.server.reports.storage.rows import ReportRow
from runvitals.server.user_content.markdown import mentions_of
from runvitals.store.errors import NotFound

MENTIONED: Final = "report.mentioned"
_MAX_QUOTE: Final = 2000


class ReportNotices:
    """Puts news about reports into the outbox. Call it in the transaction of what it reports.

    Args:
        by_id: the user who did it; None: a service account.
        by: their name.
    """

    def __init__(
        self, store: MetadataStore, directory: Directory, now_ms: int, by_id: int | None, by: str
    ) -> None:
        self._store = store
        self._directory = directory
        self._now_ms = now_ms
        self._by_id = by_id
        self._by = by

    def published(self, row: ReportRow, document: Document, before: Document | None) -> None:
        """A revision was published: whoever follows the report or is mentioned for the first time gets it.

        Args:
            before: what was published until now.
        """
        new = _mentions(document) - (set() if before is None else _mentions(before))
        mentioned = self._mentioned(row, new)
        followers = self._store.accounts.report_readers.followers(row.id)
        key = f"report:{row.id}:published:{row.published_revision}"
        text = f"{self._title(row)} {self._by} published “{one_line(row.title)}”"
        self._tell(row, mentioned, MENTIONED, f"{text}, which mentions you", key)
        self._tell(row, set(followers) - mentioned, REPORT_PUBLISHED, text, key)
        self._raise(row, REPORT_PUBLISHED, f"{row.id}:{row.published_revision}")

    def commented(self, row: ReportRow, comment: CommentRow) -> None:
        """Somebody commented: the author, followers, the thread's authors and who is mentioned get it."""
        mentioned = self._mentioned(row, mentions_of(comment.text))
        thread = self._store.accounts.report_comments.thread(comment)
        others = {other.author_id for other in thread if other.author_id is not None}
        others |= set(self._store.accounts.report_readers.followers(row.id))
        others |= {row.author_id} if row.author_id is not None else set()
        key = f"report:{row.id}:comment:{comment.id}"
        about = f"“{one_line(row.title)}”"
        quote = comment.text.strip()[:_MAX_QUOTE]
        path = f"?comment={comment.id}"
        to_mentioned = f"{self._title(row)} {self._by} mentions you in a comment on {about}\n\n{quote}"
        self._tell(row, mentioned, MENTIONED, to_mentioned, key, path)
        text = f"{self._title(row)} {self._by} commented on {about}\n\n{quote}"
        self._tell(row, others - mentioned, REPORT_COMMENTED, text, key, path)
        self._raise(row, REPORT_COMMENTED, f"{row.id}:{comment.id}")

    def _title(self, row: ReportRow) -> str:
        return f"[{row.entity}/{row.project}]"

    def _mentioned(self, row: ReportRow, names: set[str]) -> set[int]:
        if not names:
            return set()
        return set(mentioned_readers(self._store.accounts, self._directory, row, names).values())

    def _tell(
        self, row: ReportRow, user_ids: Iterable[int], kind: str, text: str, key: str, query: str = ""
    ) -> None:
        others = sorted(set(user_ids) - {self._by_id})
        payload = {"path": path_of(row) + query, "link": "Open the report", "report_id": row.id}
        readers = readers_of(self._store.accounts, self._directory, row, others)
        chosen = self._store.alerts.settings.of_users(readers)
        news = []
        for user_id in readers:
            choices = personal_alerts(chosen.get(user_id, {}))
            due = due_ms(choices, "info", self._now_ms, zone_named(self._zone(user_id)))
            targets = [f"user:{user_id}"]
            if choices.events["custom"].wants("slack", "info"):
                targets.append(f"user-slack:{user_id}")
            news += [
                Notification(
                    f"{key}:{target}",
                    kind,
                    target,
                    f"report:{row.id}",
                    text,
                    payload,
                    self._now_ms,
                    due_ms=due if due > self._now_ms else None,
                )
                for target in targets
            ]
        self._store.accounts.report_notices.put(news)

    def _zone(self, user_id: int) -> str:
        try:
            wishes = self._store.accounts.profiles.get(user_id).fields
        except NotFound:
            wishes = {}
        settings = with_defaults(self._store.accounts.settings.all())
        return str(wishes.get("time_zone") or settings["time_zone"])

    def _raise(self, row: ReportRow, kind: str, key: str) -> None:
        if row.is_draft:
            return
        data = {
            "project": row.project,
            "project_id": row.project_id,
            "report_id": row.id,
            "report_title": row.title,
            "report_path": path_of(row),
            "author": self._by,
        }
        self._store.accounts.report_notices.raise_event(kind, row.entity_id, data, self._now_ms, key)


def path_of(row: ReportRow) -> str:
    """Return the path of the page of a report."""
    return f"/{row.entity}/{row.project}/reports/{slug_of(row.title)}--{row.id}"


def _mentions(document: Document) -> set[str]:
    return {
        name
        for block in document["blocks"]
        if block["kind"] == "text" and "@" in block["text"]
        for name in mentions_of(block["text"])
    }
