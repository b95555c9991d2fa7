"""Who has a report open to edit it."""

from __future__ import annotations

from typing import Final, NamedTuple

from sqlalchemy import Connection, delete, select

from runvitals.server.database.database import StoredTable, put_rows
from runvitals.server.database.tables.accounts import entity, user_account
from runvitals.server.database.tables.reports import report_editor

OPEN_MS: Final = 30_000
"""A page that was not heard of for so long is closed, or its user is away."""
_MAX_EDITORS: Final = 20


class ReportEditor(NamedTuple):
    """A user who is editing a report."""

    name: str
    display_name: str


class ReportEditorTable(StoredTable):
    """The table of users who are editing reports."""

    def note(self, report_id: int, user_id: int, now_ms: int) -> None:
        """Note that a user is editing a report, and forget who is not any more."""
        row = {"report_id": report_id, "user_id": user_id, "seen_ms": now_ms}
        is_over = (report_editor.c.report_id == report_id, report_editor.c.seen_ms <= now_ms - OPEN_MS)

        def work(connection: Connection) -> None:
            connection.execute(delete(report_editor).where(*is_over))
            put_rows(connection, report_editor, [row])

        self._database.write(work, durable=False)

    def remove(self, report_id: int, user_id: int) -> None:
        """Note that a user edits a report no longer."""
        same = (report_editor.c.report_id == report_id, report_editor.c.user_id == user_id)
        self._database.write(lambda connection: connection.execute(delete(report_editor).where(*same)), False)

    def others(self, report_id: int, user_id: int | None, now_ms: int) -> list[ReportEditor]:
        """Return who is editing a report, without one user; the first of too many."""
        conditions = [report_editor.c.report_id == report_id, report_editor.c.seen_ms > now_ms - OPEN_MS]
        if user_id is not None:
            conditions.append(report_editor.c.user_id != user_id)
        statement = (
            select(entity.c.name, user_account.c.display_name)
            .join(user_account, user_account.c.entity_id == entity.c.id)
            .join(report_editor, report_editor.c.user_id == user_account.c.id)
            .where(*conditions, user_account.c.deleted_ms.is_(None))
            .order_by(entity.c.name)
            .limit(_MAX_EDITORS)
        )
        with self._database.read() as connection:
            return [ReportEditor(*row) for row in connection.execute(statement)]
