"""The reports that the pages of teams and users show, in the order in which they were chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, delete

from runvitals.server.database.database import StoredTable, add_rows, in_transaction
from runvitals.server.database.tables.reports import report, report_pin
from runvitals.server.reports.storage.report_table import row_of, select_reports
from runvitals.server.reports.storage.rows import ReportRow

MAX_PINS: Final = 20


class ReportPinTable(StoredTable):
    """The table of pins. Teams and users are named by their entity ids."""

    def of_entity(self, entity_id: int) -> list[ReportRow]:
        """Return the pinned reports of a team or user, without those in the trash."""
        statement = (
            select_reports()
            .join(report_pin, report_pin.c.report_id == report.c.id)
            .where(report_pin.c.entity_id == entity_id, report.c.deleted_ms.is_(None))
            .order_by(report_pin.c.place)
        )
        with self._database.read() as connection:
            return [row_of(row) for row in connection.execute(statement)]

    @in_transaction
    def put(self, connection: Connection, entity_id: int, report_ids: Sequence[int]) -> None:
        """Replace the pins of a team or user."""
        rows = [
            {"entity_id": entity_id, "report_id": report_id, "place": position}
            for position, report_id in enumerate(dict.fromkeys(report_ids))
        ]
        connection.execute(delete(report_pin).where(report_pin.c.entity_id == entity_id))
        add_rows(connection, report_pin, rows)
