"""The ids that a metadata store has assigned, and the sample store in which they are used."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Column, Connection, Table, delete, exists, func, insert, select, text

from runvitals.server.database.database import Database, StoredTable, among, in_transaction
from runvitals.server.database.tables.runs import event, metric, pairing, run, schema, writer

_TABLES = (run, writer, metric, schema, event)


@dataclass(frozen=True, slots=True)
class HighestIds:
    """The highest ids ever assigned, including those of deleted rows."""

    writer: int
    metric: int


class IssuedIds(StoredTable):
    """Keeps the ids of a metadata store and those in a sample store consistent."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
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

    @in_transaction
    def pair(self, connection: Connection, pairing_id: str, starts: int) -> None:
        """Record the sample store in which the ids are used. Durable."""
        connection.execute(delete(pairing))
        connection.execute(insert(pairing).values(id=pairing_id, starts=starts))

    def has_writers(self) -> bool:
        """Return whether any writer was ever registered."""
        with self._database.read() as connection:
            return bool(connection.execute(select(exists(select(writer.c.id)))).scalar())

    def highest(self) -> HighestIds:
        """The highest ids ever assigned."""
        with self._database.read() as connection:
            return HighestIds(highest_id(connection, writer), highest_id(connection, metric))

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

    @in_transaction
    def skip_to(self, connection: Connection, used: HighestIds, gap: int) -> None:
        """Assign only ids above those assigned so far and those in `used`.

        Args:
            used: the highest ids that the sample store uses.
            gap: how many more ids to skip: those that a lost file may have assigned.
        """
        for table in _TABLES:
            highest = max(highest_id(connection, table), getattr(used, table.name, 0))
            set_highest_id(connection, table.name, highest + gap)


def highest_id(connection: Connection, table: Table) -> int:
    """Return the highest id of a table that was ever assigned, including those of deleted rows; 0 if none."""
    highest = connection.execute(select(func.max(table.c.id))).scalar() or 0
    return max(highest, highest_ids(connection, table.name).get(table.name, 0))


def highest_ids(connection: Connection, name: str | None = None) -> dict[str, int]:
    """Return the highest ids that were ever assigned, by table; without those that assigned none.

    Args:
        name: of the only table that is asked for.
    """
    statement = _SQLITE_IDS if connection.dialect.name == "sqlite" else _POSTGRESQL_IDS
    return {table: highest for table, highest in connection.execute(statement, {"name": name}) if highest}


def set_highest_id(connection: Connection, table: str, highest: int) -> None:
    """Assign only ids above one, of 1 or more, to new rows of a table."""
    values = {"name": table, "seq": highest}
    if connection.dialect.name == "sqlite":
        connection.execute(text("DELETE FROM sqlite_sequence WHERE name = :name"), values)
        connection.execute(text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :seq)"), values)
        return
    connection.execute(
        text("SELECT setval(pg_get_serial_sequence('\"' || :name || '\"', 'id'), :seq)"), values
    )


_TURN = text("SELECT pg_advisory_xact_lock(1920300656)")
_SQLITE_IDS = text(
    "SELECT name, max(seq) FROM sqlite_sequence WHERE coalesce(:name, name) = name GROUP BY name"
)
_POSTGRESQL_IDS = text(
    "SELECT owner.relname, pg_sequence_last_value(pg_depend.objid) FROM pg_depend "
    "JOIN pg_class AS owner ON owner.oid = refobjid JOIN pg_sequence ON seqrelid = objid "
    "WHERE pg_depend.classid = 'pg_class'::regclass AND refclassid = 'pg_class'::regclass "
    "AND deptype IN ('a', 'i') AND pg_table_is_visible(owner.oid) "
    "AND coalesce(:name, owner.relname) = owner.relname"
)
