"""The table of frozen panels: which file has the values of a panel of a day."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, delete, insert, select

from runvitals.server.database.database import StoredTable, add_rows, in_transaction
from runvitals.server.database.limits import take_turns
from runvitals.server.database.tables.reports import frozen_panel


class FrozenPanelTable(StoredTable):
    """The stored values of panels: as long as a report has them, a version may show them."""

    @in_transaction
    def add(self, connection: Connection, report_id: int, panel_id: str, frozen_ms: int, digest: str) -> None:
        """Note the file with the values of a panel; those of the same millisecond are replaced."""
        take_turns(connection, "frozen_panel", report_id)
        connection.execute(delete(frozen_panel).where(*_same(report_id, panel_id, frozen_ms)))
        connection.execute(
            insert(frozen_panel).values(
                report_id=report_id, panel_id=panel_id, frozen_ms=frozen_ms, digest=digest
            )
        )

    @in_transaction
    def copy(self, connection: Connection, source_id: int, report_id: int) -> None:
        """Give a report the frozen panels of another one, whose files it has."""
        rows = connection.execute(select(frozen_panel).where(frozen_panel.c.report_id == source_id))
        add_rows(connection, frozen_panel, [{**row._asdict(), "report_id": report_id} for row in rows])

    def digest(self, report_id: int, panel_id: str, frozen_ms: int) -> str | None:
        """Return the SHA-256 of the values of a panel; None: it was not frozen then."""
        statement = select(frozen_panel.c.digest).where(*_same(report_id, panel_id, frozen_ms))
        with self._database.read() as connection:
            digest: str | None = connection.execute(statement).scalar()
        return digest


def _same(report_id: int, panel_id: str, frozen_ms: int) -> tuple[ColumnElement[bool], ...]:
    return (
        frozen_panel.c.report_id == report_id,
        frozen_panel.c.panel_id == panel_id,
        frozen_panel.c.frozen_ms == frozen_ms,
    )
