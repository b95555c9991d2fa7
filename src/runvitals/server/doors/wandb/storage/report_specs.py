"""What W&B's clients sent for reports."""

from __future__ import annotations

import zlib

from sqlalchemy import Connection, delete, insert, select

from runvitals.server.database.database import StoredTable, in_transaction
from runvitals.server.database.limits import take_turns
from runvitals.server.database.tables.reports import wandb_report


class ReportSpecTable(StoredTable):
    """The table of these specifications: the newest of each report."""

    def get(self, report_id: int) -> str | None:
        """Return what `put` stored for a report; None if no client wrote it."""
        statement = select(wandb_report.c.spec).where(wandb_report.c.report_id == report_id)
        with self._database.read() as connection:
            packed = connection.execute(statement).scalar()
        return None if packed is None else zlib.decompress(packed).decode()

    @in_transaction
    def put(self, connection: Connection, report_id: int, spec: str) -> None:
        """Store what a client sent for a report, instead of what one sent before."""
        row = {"report_id": report_id, "spec": zlib.compress(spec.encode())}
        take_turns(connection, "wandb_report", report_id)
        connection.execute(delete(wandb_report).where(wandb_report.c.report_id == report_id))
        connection.execute(insert(wandb_report).values(row))
