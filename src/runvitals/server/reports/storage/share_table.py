"""The table of people with whom reports are shared by name."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select, update

from runvitals.server.database.database import StoredTable, in_transaction
from runvitals.server.database.limits import check_room, take_turns
from runvitals.server.database.rights_generation import rights_changed
from runvitals.server.database.tables.accounts import entity, user_account
from runvitals.server.database.tables.reports import report_share
from runvitals.server.reports.storage.rows import ShareRole

MAX_SHARES = 500
"""People with whom a report is shared."""


@dataclass(frozen=True, slots=True)
class ReportShare:
    """A person with whom a report is shared."""

    user_id: int
    name: str
    role: ShareRole
    created_ms: int


class ReportShareTable(StoredTable):
    """Shares of reports with people."""

    def of_report(self, report_id: int) -> list[ReportShare]:
        """Return the people with whom a report is shared, by name."""
        with self._database.read() as connection:
            return _of_report(connection, report_id)

    @in_transaction
    def put(
        self,
        connection: Connection,
        report_id: int,
        user_id: int,
        role: ShareRole,
        by: int | None,
        now_ms: int,
    ) -> None:
        """Share a report with a user, or change their role.

        Raises:
            LimitReached: it is shared with too many people.
        """
        same = (report_share.c.report_id == report_id, report_share.c.user_id == user_id)
        values = {"role": role, "created_by": by, "created_ms": now_ms}
        take_turns(connection, "report_share", report_id)
        if not connection.execute(update(report_share).where(*same).values(role=role)).rowcount:
            refusal = f"the report is shared with {MAX_SHARES} people; share it by a link"
            this = report_share.c.report_id == report_id
            check_room(connection, report_share, MAX_SHARES, refusal, this, owner_id=report_id)
            connection.execute(insert(report_share).values(report_id=report_id, user_id=user_id, **values))
        rights_changed(connection)

    @in_transaction
    def remove(self, connection: Connection, report_id: int, user_id: int) -> bool:
        """Share a report with a user no longer; returns whether it was."""
        same = (report_share.c.report_id == report_id, report_share.c.user_id == user_id)
        removed = connection.execute(delete(report_share).where(*same)).rowcount > 0
        rights_changed(connection)
        return removed


def _of_report(connection: Connection, report_id: int) -> list[ReportShare]:
    statement = (
        select(report_share.c.user_id, entity.c.name, report_share.c.role, report_share.c.created_ms)
        .join(user_account, user_account.c.id == report_share.c.user_id)
        .join(entity, entity.c.id == user_account.c.entity_id)
        .where(report_share.c.report_id == report_id, user_account.c.state != "deleted")
        .order_by(entity.c.name)
    )
    return [ReportShare(**row._asdict()) for row in connection.execute(statement)]
