"""Which runs were on which hosts."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, func, select

from runvitals.model.filter import Filter, ReadableRuns
from runvitals.model.names import plain_text
from runvitals.server.database.database import StoredTable
from runvitals.server.database.tables.runs import run, writer
from runvitals.server.runs.storage.filter_sql import plan


class HostRuns(StoredTable):
    """Finds runs by their hosts.

    Args of all methods:
        readable: only runs that the principal may read; None: all.
    """

    def newest(self, since_ms: int, now_ms: int, readable: ReadableRuns | None = None) -> dict[str, int]:
        """By host with a record since then: the run of its newest record."""
        rank = func.row_number().over(
            partition_by=writer.c.host, order_by=(writer.c.last_ms.desc(), writer.c.id.desc())
        )
        with self._database.read() as connection:
            records = (
                select(writer.c.host, writer.c.run_id, rank.label("place"))
                .join(run, run.c.id == writer.c.run_id)
                .where(
                    writer.c.last_ms >= since_ms, writer.c.host != "", *_where(connection, readable, now_ms)
                )
                .subquery()
            )
            statement = select(records.c.host, records.c.run_id).where(records.c.place == 1)
            return dict(connection.execute(statement).all())

    def on_host(
        self,
        host: str,
        t0_ms: int,
        t1_ms: int,
        limit: int,
        now_ms: int,
        readable: ReadableRuns | None = None,
    ) -> list[int]:
        """Return the runs with a record from this host between two times, the newest first."""
        newest = func.max(writer.c.last_ms)
        with self._database.read() as connection:
            statement = (
                select(writer.c.run_id)
                .join(run, run.c.id == writer.c.run_id)
                .where(
                    writer.c.host == plain_text(host),
                    writer.c.last_ms >= t0_ms,
                    writer.c.started_ms <= t1_ms,
                    *_where(connection, readable, now_ms),
                )
                .group_by(writer.c.run_id)
                .order_by(newest.desc(), writer.c.run_id.desc())
                .limit(limit)
            )
            return list(connection.execute(statement).scalars())


def _where(connection: Connection, readable: ReadableRuns | None, now_ms: int) -> list[ColumnElement[bool]]:
    return plan(connection, Filter(readable=readable), now_ms, needed=None).where
