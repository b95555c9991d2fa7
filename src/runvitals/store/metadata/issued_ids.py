"""The numbers that a catalogue has given, and the store of samples that they are used in."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, Table, delete, exists, func, insert, select, text

from runvitals.store.metadata.database import Database
from runvitals.store.metadata.tables import event, metric, pairing, run, schema, writer

_NUMBERED = (run, writer, metric, schema, event)


@dataclass(frozen=True, slots=True)
class HighestIds:
    """The highest numbers that were given, also to what is not there any more."""

    writer: int
    metric: int


class IssuedIds:
    """What keeps the numbers of a catalogue and those in a store the same."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.name = database.name

    def pairing(self) -> tuple[str, int] | None:
        """The id that the store has as well, and how often a server has used the two; None: not said yet."""
        with self._database.read() as connection:
            row = connection.execute(select(pairing.c.id, pairing.c.starts)).first()
        return None if row is None else (str(row.id), int(row.starts))

    def pair(self, pairing_id: str, starts: int) -> None:
        """Note the store that the numbers are used in. Durable."""

        def work(connection: Connection) -> None:
            connection.execute(delete(pairing))
            connection.execute(insert(pairing).values(id=pairing_id, starts=starts))

        self._database.write(work)

    def has_writers(self) -> bool:
        """Whether anybody ever joined."""
        with self._database.read() as connection:
            return bool(connection.execute(select(exists(select(writer.c.id)))).scalar())

    def given(self) -> HighestIds:
        """The highest numbers that were given."""
        with self._database.read() as connection:
            return HighestIds(self._highest(connection, writer), self._highest(connection, metric))

    def go_on_after(self, at_least: HighestIds, leave_out: int) -> None:
        """Give no number again that was given before or is named here, nor any of the next ones.

        Args:
            leave_out: how many: those that may have been given by what is lost.
        """

        def work(connection: Connection) -> None:
            for table in _NUMBERED:
                highest = max(self._highest(connection, table), getattr(at_least, table.name, 0))
                self._set_highest(connection, table, highest + leave_out)

        self._database.write(work)

    def _highest(self, connection: Connection, table: Table) -> int:
        there = connection.execute(select(func.max(table.c.id))).scalar() or 0
        if self._database.is_sqlite:
            given = text("SELECT max(seq) FROM sqlite_sequence WHERE name = :name")
            return max(there, connection.execute(given, {"name": table.name}).scalar() or 0)
        name = connection.execute(_SEQUENCE, {"name": f'"{table.name}"'}).scalar_one()
        last, is_called = connection.execute(text(f"SELECT last_value, is_called FROM {name}")).one()
        return max(there, int(last) if is_called else 0)

    def _set_highest(self, connection: Connection, table: Table, highest: int) -> None:
        if self._database.is_sqlite:
            named = {"name": table.name, "seq": highest}
            connection.execute(text("DELETE FROM sqlite_sequence WHERE name = :name"), named)
            connection.execute(text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :seq)"), named)
            return
        name = connection.execute(_SEQUENCE, {"name": f'"{table.name}"'}).scalar_one()
        connection.execute(text("SELECT setval(:name, :seq)"), {"name": name, "seq": highest})


_SEQUENCE = text("SELECT pg_get_serial_sequence(:name, 'id')")
