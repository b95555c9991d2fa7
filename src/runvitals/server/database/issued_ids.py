"""The ids that a metadata store has assigned, and the sample store in which they are used."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Column, Connection, Table, delete, exists, func, insert, select, text

from runvitals.server.database.database import Database, among
from runvitals.server.database.tables.runs import event, metric, pairing, run, schema, writer

_TABLES = (run, writer, metric, schema, event)


@dataclass(frozen=True, slots=True)
class HighestIds:
    """The highest ids ever assigned, including those of deleted rows."""

    writer: int
    metric: int


class IssuedIds:
    """Keeps the ids of a metadata store and those in a sample store consistent."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.name = database.name
        # PostgreSQL is restored from dumps and fails over to copies; the right file can be put back.
        self.may_be_older = not database.is_sqlite

    def pairing(self) -> tuple[str, int] | None:
        """Return the id shared with the sample store and how often both started; None if not paired."""
        with self._database.read() as connection:
            row = connection.execute(select(pairing.c.id, pairing.c.starts)).first()
        return None if row is None else (str(row.id), int(row.starts))

    def take_turns(self) -> None:
        """In PostgreSQL, wait until no other server starts. In one transaction with what follows."""
        if not self._database.is_sqlite:  # in which writers take turns anyway
            self._database.write(lambda connection: connection.execute(_TURN))

    def pair(self, pairing_id: str, starts: int) -> None:
        """Record the sample store in which the ids are used. Durable."""

        def work(connection: Connection) -> None:
            connection.execute(delete(pairing))
            connection.execute(insert(pairing).values(id=pairing_id, starts=starts))

        self._database.write(work)

    def has_writers(self) -> bool:
        """Return whether any writer was ever registered."""
        with self._database.read() as connection:
            return bool(connection.execute(select(exists(select(writer.c.id)))).scalar())

    def highest(self) -> HighestIds:
        """The highest ids ever assigned."""
        with self._database.read() as connection:
            return HighestIds(self._highest(connection, writer), self._highest(connection, metric))

    def unknown_lanes(self, ids: Collection[int]) -> set[int]:
        """Those of these ids under which no writer's samples are stored."""
        return self._unknown_ids(writer.c.lane_id, ids)

    def unknown_metrics(self, ids: Collection[int]) -> set[int]:
        """Those of these ids that belong to no metric."""
        return self._unknown_ids(metric.c.id, ids)

    def _unknown_ids(self, column: Column[int], ids: Collection[int]) -> set[int]:
        with self._database.read() as connection:
            rows = connection.execute(select(column).where(among(connection, column, ids)))
            return set(ids).difference(rows.scalars())

    def skip_to(self, used: HighestIds, gap: int) -> None:
        """Assign only ids above those assigned so far and those in `used`.

        Args:
            used: the highest ids that the sample store uses.
            gap: how many more ids to skip: those that a lost file may have assigned.
        """

        def work(connection: Connection) -> None:
            for table in _TABLES:
                highest = max(self._highest(connection, table), getattr(used, table.name, 0))
                self._set_highest(connection, table, highest + gap)

        self._database.write(work)

    def _highest(self, connection: Connection, table: Table) -> int:
        highest = connection.execute(select(func.max(table.c.id))).scalar() or 0
        if self._database.is_sqlite:
            sequence = text("SELECT max(seq) FROM sqlite_sequence WHERE name = :name")
            return max(highest, connection.execute(sequence, {"name": table.name}).scalar() or 0)
        name = connection.execute(_SEQUENCE, {"name": f'"{table.name}"'}).scalar_one()
        last, is_called = connection.execute(text(f"SELECT last_value, is_called FROM {name}")).one()
        return max(highest, int(last) if is_called else 0)

    def _set_highest(self, connection: Connection, table: Table, highest: int) -> None:
        if self._database.is_sqlite:
            values = {"name": table.name, "seq": highest}
            connection.execute(text("DELETE FROM sqlite_sequence WHERE name = :name"), values)
            connection.execute(text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :seq)"), values)
            return
        name = connection.execute(_SEQUENCE, {"name": f'"{table.name}"'}).scalar_one()
        connection.execute(text("SELECT setval(:name, :seq)"), {"name": name, "seq": highest})


_TURN = text("SELECT pg_advisory_xact_lock(1920300656)")
_SEQUENCE = text("SELECT pg_get_serial_sequence(:name, 'id')")
