"""Puts news about reports into the outbox, and raises them for automations of teams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, select, update

from runvitals.server.database.database import StoredTable, in_transaction
from runvitals.server.database.tables.alerts import notification
from runvitals.server.events import outbox
from runvitals.server.events.automation_events import raise_for_team
from runvitals.server.events.outbox import Notification

_KINDS = "report.%"


class ReportNoticeTable(StoredTable):
    """News about reports, in the transaction of what they report."""

    @in_transaction
    def put(self, connection: Connection, news: Sequence[Notification]) -> None:
        """Put notifications into the outbox. Those that wait for a digest are joined by target."""
        for notice in news:
            if notice.due_ms is None or not _join(connection, notice):
                outbox.add(connection, notice)

    def raise_event(self, kind: str, team_id: int, data: Mapping[str, Any], time_ms: int, key: str) -> None:
        """Write what happened to a report, for automations of the team."""
        self._database.write(lambda connection: raise_for_team(connection, kind, team_id, data, time_ms, key))


def _join(connection: Connection, new: Notification) -> bool:
    """Add a text to the one that waits for the same digest; False if none does."""
    row = notification.c
    waiting = (row.target == new.target, row.state == "pending", row.tries == 0, row.next_ms == new.due_ms)
    statement = select(row.id, row.text).where(*waiting, row.kind.like(_KINDS))
    before = connection.execute(statement.order_by(row.id).limit(1).with_for_update()).first()
    if before is None:
        return False
    text = f"{before.text}\n\n{new.text}"
    if len(text) <= outbox.MAX_TEXT:
        connection.execute(update(notification).where(row.id == before.id).values(text=text))
    return True
