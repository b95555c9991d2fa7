"""The system statistics of runs: fields such as `system.gpu`, beside those of configuration and summary."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, and_, or_, select

from runvitals.model import fields
from runvitals.model.fields import NUMBER, Scalar
from runvitals.model.system_statistics import VERSION, statistic_names
from runvitals.server.database.database import StoredTable, among, ids_of, put_rows
from runvitals.server.database.tables.runs import field, run, run_field, run_statistics
from runvitals.server.runs.storage.run_locks import lock_runs
from runvitals.server.runs.storage.search_columns import write_fields

REFRESH_MS = 60_000
"""The statistics of a running run are computed again when it has so much more data."""


class DueRun(NamedTuple):
    """A run whose statistics are missing or old."""

    id: int
    uid: str
    started_ms: int
    last_ms: int


class ComputedStatistics(NamedTuple):
    """The statistics of a run by field. `as_of_ms`: `last_ms` of the run when its data was read."""

    run_id: int
    as_of_ms: int
    values: Mapping[str, float]


class RunStatisticsTable(StoredTable):
    """The system statistics of all runs."""

    def due(
        self, now_ms: int, limit: int, newer_than: int = 0, among_runs: Iterable[int] = ()
    ) -> list[DueRun]:
        """Return runs whose statistics must be computed, the newest first.

        Args:
            newer_than: only runs with a greater id; 0: all, which reads a row of each.
            among_runs: these runs too.
        """
        older = run_statistics.c.as_of_ms < run.c.last_ms
        much_older = run_statistics.c.as_of_ms + REFRESH_MS <= run.c.last_ms
        running = and_(run.c.alive_until_ms.is_not(None), run.c.alive_until_ms >= now_ms)
        statement = (
            select(run.c.id, run.c.uid, run.c.started_ms, run.c.last_ms)
            .outerjoin(run_statistics, run_statistics.c.run_id == run.c.id)
            .where(
                run.c.deleted_ms.is_(None),
                or_(
                    run_statistics.c.run_id.is_(None),
                    run_statistics.c.version != VERSION,
                    much_older,
                    and_(older, ~running),
                ),
            )
            .order_by(run.c.id.desc())
            .limit(limit)
        )
        with self._database.read() as connection:
            if newer_than:
                is_among_runs = among(connection, run.c.id, among_runs)
                statement = statement.where(or_(run.c.id > newer_than, is_among_runs))
            return [DueRun(*row) for row in connection.execute(statement)]

    def running(self, now_ms: int) -> set[int]:
        """Return the ids of the running runs."""
        with self._database.read() as connection:
            statement = select(run.c.id).where(run.c.alive_until_ms >= now_ms)
            return set(connection.execute(statement).scalars())

    def put(self, computed: Sequence[ComputedStatistics]) -> None:
        """Replace the statistics of runs; those that do not exist any more are skipped."""

        def work(connection: Connection) -> None:
            existing = set(lock_runs(connection, [row.run_id for row in computed]))
            statistics = [row for row in computed if row.run_id in existing]
            after = {
                row.run_id: {name: fields.of_number(value) for name, value in row.values.items()}
                for row in statistics
            }
            write_fields(connection, _before(connection, existing), after)
            rows = [
                {"run_id": row.run_id, "as_of_ms": row.as_of_ms, "version": VERSION} for row in statistics
            ]
            put_rows(connection, run_statistics, rows)

        if computed:
            self._database.write(work, durable=False)


def _before(connection: Connection, run_ids: Iterable[int]) -> dict[int, dict[str, Scalar]]:
    numbers = ids_of(connection, field.c.name, statistic_names())
    by_number = {number: name for name, number in numbers.items()}
    statement = select(run_field.c.run_id, run_field.c.field_id, run_field.c.number).where(
        among(connection, run_field.c.run_id, run_ids),
        among(connection, run_field.c.field_id, by_number),
        run_field.c.kind == NUMBER,
    )
    values: dict[int, dict[str, Scalar]] = defaultdict(dict)
    for run_id, number, value in connection.execute(statement):
        values[run_id][by_number[number]] = fields.of_number(value)
    return values
