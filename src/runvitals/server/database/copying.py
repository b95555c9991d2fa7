"""Copies a metadata store into a new one, in SQLite or PostgreSQL: all rows of all tables, or nothing.

The new one gets the tables of the same revision. Each row is read through SQLAlchemy, which knows how each
database stores truth values and bytes, and is written at once: nothing is kept in memory. What was written
is read back and compared.
"""

from __future__ import annotations

import math
import os
import sqlite3
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, MetaData, Table, func, inspect, select, table, text
from sqlalchemy.exc import SAWarning
from sqlalchemy.schema import AddConstraint, DropConstraint, ExecutableDDLElement

from runvitals.server.database.backup import named_when_complete
from runvitals.server.database.database import Database, sqlite_path
from runvitals.server.database.issued_ids import highest_ids, set_highest_id
from runvitals.server.database.migration import check_known, create_at, is_empty, present
from runvitals.server.database.server_link import count_servers
from runvitals.server.database.tables.runs import pairing
from runvitals.store.errors import MetadataStoreError

_SEARCH: Final = ("run_text_fts", "run_text_terms")
"""Beginnings of the names of SQLite's index of search texts, which triggers fill."""
_REVISION: Final = "alembic_version"
_ROWS_READ: Final = 200
"""Rows that are fetched at once: a row of a report may have megabytes."""
_ROWS_REPORTED: Final = 10_000
_UNHURRIED: Final = (
    "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0; "
    "SET LOCAL lock_timeout = '30s'"
)
"""A copy may take hours. It waits shortly for those who hold a lock."""
_SKIPPED_STARTS: Final = 2

Report = Callable[[str], None]


class TableCopy(NamedTuple):
    """What was copied of a table. `digest`: a sum over its rows, in any order."""

    name: str
    rows: int
    digest: str


def copy_database(source: Database, target: Database, report: Report) -> list[TableCopy]:
    """Copy a consistent snapshot of a metadata store into an empty database, in one transaction.

    Servers may use the source.

    Args:
        report: called with a text for every some thousand rows.

    Raises:
        MetadataStoreError: the target is not empty, has other tables, or does not return what was written.
    """
    with source.read() as reading:
        return _copy(source, reading, target, report)


def move_database(source_address: str, target_address: str, report: Report) -> list[TableCopy]:
    """Copy a metadata store that no server uses, so that servers can use the new one from now on.

    They will refuse the old one, once one has started with the new one.

    Raises:
        MetadataStoreError: a server uses the source, or as `copy_database`.
    """
    path, target_path = sqlite_path(source_address), sqlite_path(target_address)
    if path is not None:
        _check_not_open(path)
    if target_path is None:
        return _move(source_address, target_address, report)
    if os.path.lexists(target_path):
        raise MetadataStoreError(f"{target_path} exists already: choose another name, or move it away")
    with named_when_complete(target_path) as unfinished:
        return _move(source_address, unfinished, report)


def _move(source_address: str, target_address: str, report: Report) -> list[TableCopy]:
    with closing(Database(source_address)) as source, closing(Database(target_address)) as target:
        # Nobody else writes meanwhile: SQLite has one writer, and tables of PostgreSQL are locked.
        return source.write(lambda reading: _copy(source, reading, target, report, moves=True))


def _check_no_server(reading: Connection) -> None:
    if count_servers(reading):
        raise MetadataStoreError("servers use the metadata store that is to be moved: end all of them first")


def _lock(source: Database, reading: Connection) -> None:
    """Let nobody write any more, before the first query decides what this transaction sees."""
    with source.read() as connection:
        _check_no_server(connection)
        names = ", ".join(f'"{name}"' for name in _names(connection))
    reading.exec_driver_sql(f"LOCK TABLE {names} IN SHARE MODE")


def _finish_move(reading: Connection, writing: Connection) -> None:
    _check_no_server(reading)  # one may have started meanwhile, and waits for the tables
    # A sample store refuses a metadata store that has counted fewer starts.
    writing.execute(pairing.update().values(starts=pairing.c.starts + _SKIPPED_STARTS))


def _check_not_open(path: str) -> None:
    """Raise MetadataStoreError if another process has a SQLite file open, as a server has."""
    try:
        uri = f"{Path(path).absolute().as_uri()}?mode=rw"
        with closing(sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None)) as connection:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        raise MetadataStoreError(
            f"{path} cannot be moved ({error}): end the server that uses it first"
        ) from None


def _copy(
    source: Database,
    reading: Connection,
    target: Database,
    report: Report,
    moves: bool = False,
) -> list[TableCopy]:
    revision = present(source)
    if revision is None:
        raise MetadataStoreError(f"{source.name} is not a metadata store: it has no tables")
    check_known(revision, f"the metadata store {source.name}")
    if not is_empty(target):
        raise MetadataStoreError(f"{target.name} is not empty: choose a new database")
    if not source.is_sqlite:
        reading.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reading.exec_driver_sql(_UNHURRIED)
        if moves:
            _lock(source, reading)

    def work(writing: Connection) -> list[TableCopy]:
        if not target.is_sqlite:
            writing.exec_driver_sql(_UNHURRIED)
        create_at(writing, revision)
        copies = _copy_tables(reading, writing, report)
        if moves:
            _finish_move(reading, writing)
        return copies

    return target.change_tables(work)


def _copy_tables(reading: Connection, writing: Connection, report: Report) -> list[TableCopy]:
    names = _names(writing)
    missing = set(names).difference(_names(reading))
    if missing:
        raise MetadataStoreError(f"the source has no table {', '.join(sorted(missing))}")
    sources, targets = _tables(reading, names), _tables(writing, names)
    keys = [key for table in targets for key in table.foreign_key_constraints]
    writes_sqlite = writing.dialect.name == "sqlite"
    if not writes_sqlite:  # tables refer to each other, and rows to rows of their own table
        _execute_all(writing, map(DropConstraint, keys))
    copies = [_copy_table(reading, writing, *pair, report) for pair in zip(sources, targets, strict=True)]
    for name, highest in highest_ids(reading).items():
        set_highest_id(writing, name, highest)
    if writes_sqlite:
        for row in writing.exec_driver_sql("PRAGMA foreign_key_check"):
            raise MetadataStoreError(f"a row of table {row[0]} refers to a missing row of table {row[2]}")
    else:
        _execute_all(writing, map(AddConstraint, keys))
        writing.execute(text("ANALYZE"))
    return copies


def _execute_all(connection: Connection, statements: Iterable[ExecutableDDLElement]) -> None:
    connection.exec_driver_sql(";".join(str(statement.compile(connection)) for statement in statements))


def count_rows(database: Database) -> dict[str, int]:
    """Return the number of rows of each table that has some."""
    with database.read() as connection:
        counts = {
            name: connection.execute(select(func.count()).select_from(table(name))).scalar_one()
            for name in _names(connection)
        }
    return {name: count for name, count in counts.items() if count}


def _names(connection: Connection) -> list[str]:
    """Return the names of all tables with rows of their own, sorted."""
    names = inspect(connection).get_table_names()
    return sorted(name for name in names if name != _REVISION and not name.startswith(_SEARCH))


def _tables(connection: Connection, names: list[str]) -> list[Table]:
    """Return tables as the database has them: those of the code may be of a later revision."""
    tables = MetaData()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SAWarning)  # of indexes of expressions, which are of no interest here
        tables.reflect(connection, only=names)
    return [tables.tables[name] for name in names]


def _copy_table(
    reading: Connection, writing: Connection, source: Table, target: Table, report: Report
) -> TableCopy:
    """Copy the rows of a table, and read them back."""
    columns = [column.name for column in target.columns]
    differing = set(columns).symmetric_difference(source.columns.keys())
    if differing:
        raise MetadataStoreError(f"table {target.name} has other columns: {', '.join(sorted(differing))}")
    read, written = _RowDigest(), _RowDigest()
    rows = read.through(_rows(reading, source, columns), report, target.name)
    first = next(rows, None)
    if first is None:
        return TableCopy(target.name, 0, read.value())
    try:
        _write(writing, target, columns, chain([first], rows))
    except (sqlite3.Error, writing.dialect.loaded_dbapi.Error) as error:
        reason = "; ".join(line.strip() for line in str(error).splitlines() if line.strip())
        raise MetadataStoreError(f"table {target.name} could not be copied: {reason}") from error
    for _ in written.through(_rows(writing, target, columns), report, f"{target.name}, compared"):
        pass
    if written.value() != read.value():
        raise MetadataStoreError(
            f"table {target.name} is not as it was written: {written.rows:,} rows with the digest "
            f"{written.value()}, instead of {read.rows:,} with {read.value()}"
        )
    return TableCopy(target.name, read.rows, read.value())


def _rows(connection: Connection, table: Table, columns: Iterable[str]) -> Iterator[tuple[Any, ...]]:
    statement = select(*(table.c[name] for name in columns))
    with connection.execute(statement, execution_options={"yield_per": _ROWS_READ}) as result:
        yield from map(tuple, result)


def _write(
    connection: Connection, table: Table, columns: Iterable[str], rows: Iterator[tuple[Any, ...]]
) -> None:
    """Write rows by the fastest means of each driver, one after the other."""
    quote = connection.dialect.identifier_preparer.quote_identifier
    names = ", ".join(map(quote, columns))
    cursor: Any = connection.connection.cursor()
    with closing(cursor):
        if connection.dialect.name == "sqlite":
            marks = ", ".join("?" for _ in columns)
            cursor.executemany(f"INSERT INTO {quote(table.name)} ({names}) VALUES ({marks})", rows)
            return
        with cursor.copy(f"COPY {quote(table.name)} ({names}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)


class _RowDigest:
    """A sum over rows, whatever their order: databases sort text differently."""

    def __init__(self) -> None:
        self.rows = 0
        self._sum = 0

    def through(
        self, rows: Iterable[tuple[Any, ...]], report: Report, name: str
    ) -> Iterator[tuple[Any, ...]]:
        """Yield rows, and add each."""
        for row in rows:
            packed = repr([_neutral(value) if type(value) is float else value for value in row])
            self._sum += int.from_bytes(
                blake2b(packed.encode("utf-8", "surrogatepass"), digest_size=16).digest(), "big"
            )
            self.rows += 1
            if self.rows % _ROWS_REPORTED == 0:
                report(f"{name}: {self.rows:,} rows")
            yield row

    def value(self) -> str:
        """The sum, as hexadecimal digits."""
        return f"{self._sum % (1 << 128):032x}"


def _neutral(value: float) -> float | None:
    """Return a number as both databases return it: SQLite stores NaN as NULL, and knows no -0.0."""
    return None if math.isnan(value) else value + 0.0
