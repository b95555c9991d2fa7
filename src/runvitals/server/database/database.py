"""The database of the metadata store: SQLite or PostgreSQL, connections, transactions.

SQLite uses WAL mode: readers see the last commit and never wait; writers of this process take turns in order,
and wait up to `BUSY_S` for those of other processes. PostgreSQL is used at READ COMMITTED; rows that must not
change during a write are locked in ascending order of ids.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeAlias, TypeVar

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Engine,
    Integer,
    Table,
    any_,
    bindparam,
    create_engine,
    event,
    func,
    literal,
    select,
    update,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    IntegrityError,
    NoResultFound,
    NoSuchModuleError,
    OperationalError,
    SQLAlchemyError,
    StatementError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import ConnectionPoolEntry, StaticPool

from runvitals.base import deadline
from runvitals.store import database_files, private_files
from runvitals.store.database_files import OpenedFile
from runvitals.store.errors import DeletedMeanwhile, MetadataStoreError, MetadataStoreUnavailable, QueryFailed
from runvitals.store.samples.sqlite.database import open_read_only

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql  # a quarter of what importing SQLAlchemy costs

T = TypeVar("T")
P = ParamSpec("P")
Insert: TypeAlias = "sqlite.Insert | postgresql.Insert"

BUSY_S = 30.0
"""How long a SQLite writer waits for writers of other processes."""
OLDEST_SQLITE = (3, 34, 0)
"""The first version with a trigram tokenizer."""
_PAGES_KIB = 16 * 1024
POOLED_CONNECTIONS = 8
FURTHER_CONNECTIONS = 24
"""Of one process, beside those that stay open. `max_connections` of PostgreSQL in `deploy/` counts both."""
_KEEPALIVES = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""For connections to PostgreSQL, in s and ms: otherwise it takes a quarter of an hour until a server notices
that the other machine has vanished.
"""
_NAMES_PER_QUERY = 500
_STEPS_PER_CHECK = 50_000
"""SQLite VM steps between two checks of a query's deadline; about a millisecond."""
_MAX_ATTEMPTS = 5
_FAILURE_REPORTED_S = 60.0
_BEGIN = "runvitals_begin"
# The transaction was rolled back and can be retried: deadlock, serialization failure; a unique or foreign key
# that another transaction wrote or deleted after this one had looked: the next attempt sees that and says so.
_RETRYABLE = ("40P01", "40001", "23505", "23503")


class Database:
    """A database, by its address.

    Args:
        address: `postgresql://user:password@host/name`, `sqlite:////absolute/path`, or the path of a SQLite
            file, which is created if missing; its folder must exist.

    Raises:
        ValueError: unsupported address.
        MetadataStoreError: SQLite is too old, or its file could not be created.
    """

    _file: OpenedFile | None = None
    _failed: tuple[float, str] | None = None

    def __init__(self, address: str) -> None:
        url = _parse(address)
        self.is_sqlite = url.get_backend_name() == "sqlite"
        self.name = url.render_as_string(hide_password=True)
        self.engine = _sqlite(url) if self.is_sqlite else _postgresql(url)
        self._writing = threading.Lock()
        self._joint = _JointTransaction()
        self._path = url.database if self.is_sqlite else None

    def watch_file(self) -> None:
        """From now on, check that the file was not deleted or replaced; see `problem`."""
        # Not before the first write: on some file systems that changes the identity of a file.
        self._file = OpenedFile(self._path) if self._path else None

    @property
    def in_joint_transaction(self) -> bool:
        """Whether this thread is in `in_one_transaction`."""
        return self._joint.connection is not None

    def problem(self) -> str | None:
        """Why writes would be lost: the file at the path is not the one that was opened; None if it is."""
        return self._file.problem() if self._file else None

    @property
    def write_problem(self) -> str | None:
        """Return why the last write failed, such as a full disk; None if none did within the last minute.

        Clients may wait until this is None before they send again.
        """
        failed = self._failed
        if failed is None or time.monotonic() - failed[0] > _FAILURE_REPORTED_S:
            return None
        return f"{self.name}: {failed[1]}"

    def _check_file(self) -> None:
        problem = self.problem()
        if problem is not None:
            raise MetadataStoreUnavailable(problem)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection that sees what was committed. On SQLite, all reads see the same snapshot.

        Raises:
            QueryFailed: a query failed.
            MetadataStoreUnavailable: the database could not be reached, or its file was deleted or replaced.
        """
        if self._joint.connection is not None:
            yield self._joint.connection
            return
        self._check_file()
        with _own_errors(), self.engine.connect() as connection, connection.begin():
            left_s = deadline.left_s()
            if left_s is not None and not self.is_sqlite:  # SQLite checks the deadline itself: see `_prepare`
                connection.exec_driver_sql(f"SET LOCAL statement_timeout = {int(left_s * 1000) + 1}")
            yield connection

    def write(self, work: Callable[[Connection], T], durable: bool = True) -> T:
        """Run `work` in one transaction; returns its result.

        Args:
            work: is run again if the transaction conflicts with another one.
            durable: whether it survives a power failure once this returns. If False, the last 0.1 s of writes
                may be lost (on SQLite: everything after the last durable commit), but never part of a
                transaction.

        Raises:
            DeletedMeanwhile: a row that was looked up before was deleted; nothing was written.
            QueryFailed: a query failed; nothing was written.
            MetadataStoreUnavailable: the database could not be reached or written, or its file was deleted or
                replaced.
        """
        joint = self._joint.connection
        if joint is not None:
            with joint.begin_nested():  # a write that fails leaves nothing, also if its error is handled
                return work(joint)
        self._check_file()
        try:
            written = self._write_with_retries(work, durable)
        except MetadataStoreUnavailable as error:
            if not deadline.has_passed():  # what took too long is no problem of the database
                self._failed = time.monotonic(), str(error)
            raise
        self._failed = None
        return written

    def in_one_transaction(self, work: Callable[[], T]) -> T:
        """Run `work` with all its reads and writes, of this thread, in one durable transaction.

        If `work` raises, nothing is written. It is run again if the transaction conflicts with another one.
        On SQLite other writers wait until it ends, so it must wait for nothing else.
        """

        def joined(connection: Connection) -> T:
            self._joint.connection = connection
            try:
                return work()
            finally:
                self._joint.connection = None

        return work() if self._joint.connection is not None else self.write(joined)

    def change_tables(self, work: Callable[[Connection], T]) -> T:
        """Run `work`, which may rebuild tables, in one transaction; returns its result.

        On SQLite without foreign keys: dropping the old copy of a table would delete what refers to its rows.
        """
        self._check_file()
        with _own_errors():
            try:
                return self._write(work, True, ("PRAGMA foreign_keys = OFF",))
            finally:
                if self.is_sqlite:
                    self.engine.dispose()  # the next connection has foreign keys again

    def _write_with_retries(self, work: Callable[[Connection], T], durable: bool) -> T:
        with _own_errors():
            for _ in range(_MAX_ATTEMPTS - 1):
                try:
                    return self._write(work, durable)
                except DBAPIError as error:
                    if getattr(error.orig, "sqlstate", None) not in _RETRYABLE:
                        raise
            return self._write(work, durable)

    def _write(self, work: Callable[[Connection], T], durable: bool, before: tuple[str, ...] = ()) -> T:
        if not self.is_sqlite:
            with self.engine.begin() as connection:
                if not durable:
                    connection.exec_driver_sql("SET LOCAL synchronous_commit = off")
                return work(connection)
        synchronous = "FULL" if durable else "NORMAL"
        begin = (*before, f"PRAGMA synchronous = {synchronous}", "BEGIN IMMEDIATE")
        with self._writing, self.engine.connect() as connection:
            connection = connection.execution_options(**{_BEGIN: begin})
            with connection.begin():
                return work(connection)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


class StoredTable:
    """The base of what reads and writes tables of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database


Stored = TypeVar("Stored", bound=StoredTable)


def in_transaction(
    method: Callable[Concatenate[Stored, Connection, P], T],
) -> Callable[Concatenate[Stored, P], T]:
    """Run a method in one transaction of `self._database`, as `Database.write` does.

    Its first parameter is the connection, which its callers do not pass. It may run again, so that it can
    take no iterators.
    """

    @wraps(method)
    def run(self: Stored, /, *arguments: P.args, **named: P.kwargs) -> T:
        return self._database.write(lambda connection: method(self, connection, *arguments, **named))

    return run


class _JointTransaction(threading.local):
    """The connection that all reads and writes of this thread use; None: each uses one of its own."""

    connection: Connection | None = None


@contextmanager
def _own_errors() -> Iterator[None]:
    """Raise SQLAlchemy's errors as ours: callers of the metadata store do not load SQLAlchemy."""
    try:
        yield
    except (OperationalError, PoolTimeout) as error:
        raise MetadataStoreUnavailable(_text_of(error)) from error
    except SQLAlchemyError as error:
        raise (DeletedMeanwhile if _misses_a_row(error) else QueryFailed)(_text_of(error)) from error


def _misses_a_row(error: SQLAlchemyError) -> bool:
    """Return whether a row is missing whose id another transaction had found a moment ago."""
    if isinstance(error, IntegrityError) and (error.statement or "").startswith("INSERT"):
        return "foreign key" in str(error.orig).lower()
    return isinstance(error, NoResultFound)


def _text_of(error: SQLAlchemyError) -> str:
    """An error in one line: PostgreSQL's client library writes several."""
    text = str(error.orig) if isinstance(error, StatementError) else str(error)
    return "; ".join(line.strip() for line in text.splitlines() if line.strip())


class ReadOnlyDatabase(Database):
    """An existing database opened read-only: never created, migrated or written; works on a read-only disk.

    Raises:
        ValueError: unsupported address.
        MetadataStoreError: the file does not exist, or could not be read.
    """

    def __init__(self, address: str) -> None:
        url = _parse(address)
        self.is_sqlite = url.get_backend_name() == "sqlite"
        self.name = url.render_as_string(hide_password=True)
        self._writing = threading.Lock()
        self._joint = _JointTransaction()
        if not self.is_sqlite:
            self.engine = _postgresql(url)
            return
        path = url.database or ""
        try:
            connection = open_read_only(path)
        except (OSError, sqlite3.Error) as error:
            raise MetadataStoreError(f"could not read the metadata store {path}: {error}") from error
        self.engine = create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)
        event.listen(self.engine, "begin", _begin)


def _parse(address: str) -> URL:
    if "://" not in address:
        return URL.create("sqlite", database=os.path.abspath(address))
    try:
        url = make_url(address)
        if url.drivername in ("postgres", "postgresql"):
            url = url.set(drivername="postgresql+psycopg")
        url.get_dialect()
    except (ArgumentError, NoSuchModuleError, ValueError):  # the last of a port that is none
        url = None
    if url is None or url.drivername not in ("postgresql+psycopg", "sqlite", "sqlite+pysqlite"):
        scheme = address.partition("://")[0]
        raise ValueError(
            f"unsupported metadata store address {scheme}://…; expected postgresql://user@host/name, "
            "sqlite:////path/of/a/file or the path of a file"
        )
    if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
        raise ValueError("the metadata store cannot be in memory: its connections would not share the data")
    return url


def sqlite_path(address: str) -> str | None:
    """Return the SQLite file at an address, None for PostgreSQL, or raise ValueError."""
    url = _parse(address)
    return url.database if url.get_backend_name() == "sqlite" else None


def _sqlite(url: URL) -> Engine:
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        oldest = ".".join(map(str, OLDEST_SQLITE))
        raise MetadataStoreError(
            f"this Python has SQLite {sqlite3.sqlite_version}, the metadata store needs {oldest} or newer; "
            "use another Python, or PostgreSQL"
        )
    path = url.database or ""
    obstacle = database_files.obstacle(path)
    if obstacle is not None:
        raise MetadataStoreError(f"could not open the metadata store: {obstacle}")
    try:
        # Configurations are private, so the file is too, and with it the files that SQLite creates next to
        # it.
        private_files.create(path)
        private_files.restrict(path)
    except OSError as error:
        raise MetadataStoreError(f"could not open the metadata store {path}: {error.strerror}") from error
    engine = create_engine(
        url, connect_args={"timeout": BUSY_S}, pool_size=POOLED_CONNECTIONS, max_overflow=FURTHER_CONNECTIONS
    )
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


def _prepare(connection: sqlite3.Connection, _: ConnectionPoolEntry) -> None:
    connection.isolation_level = None  # `_begin` starts transactions explicitly
    for pragma in ("journal_mode = WAL", "foreign_keys = ON", f"cache_size = -{_PAGES_KIB}"):
        connection.execute(f"PRAGMA {pragma}").close()
    connection.set_progress_handler(deadline.has_passed, _STEPS_PER_CHECK)


def _begin(connection: Connection) -> None:
    for statement in connection.get_execution_options().get(_BEGIN, ("BEGIN",)):
        connection.exec_driver_sql(statement)


def _postgresql(url: URL) -> Engine:
    try:
        # What the address says comes first.
        keepalives = {name: value for name, value in _KEEPALIVES.items() if name not in url.query}
        return create_engine(
            url,
            connect_args=keepalives,
            pool_pre_ping=True,
            pool_size=POOLED_CONNECTIONS,
            max_overflow=FURTHER_CONNECTIONS,
        )
    except ModuleNotFoundError as error:
        raise MetadataStoreError(
            f"PostgreSQL requires the package psycopg ({error}): pip install 'runvitals[postgres]'"
        ) from error


def insert(connection: Connection, table: Table) -> Insert:
    """An INSERT that supports ON CONFLICT, whose syntax is the same in both databases."""
    return _insert(connection.dialect.name, table)


def _insert(dialect: str, table: Table) -> Insert:
    if dialect == "sqlite":
        return sqlite.insert(table)
    from sqlalchemy.dialects import postgresql

    return postgresql.insert(table)


def add_rows(connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Insert rows; existing ones are left unchanged."""
    if rows:
        connection.execute(_adding(connection.dialect.name, table), rows)


def put_rows(connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Insert rows by primary key; existing ones are replaced."""
    if rows:
        connection.execute(_replacing(connection.dialect.name, table, tuple(rows[0])), rows)


# Made once for each table: that takes longer than to insert a row.
@cache
def _adding(dialect: str, table: Table) -> Insert:
    return _insert(dialect, table).on_conflict_do_nothing()


@cache
def _replacing(dialect: str, table: Table, names: tuple[str, ...]) -> Insert:
    statement = _insert(dialect, table)
    keys = [column.name for column in table.primary_key]
    others = {name: statement.excluded[name] for name in names if name not in keys}
    return statement.on_conflict_do_update(index_elements=keys, set_=others)


def update_rows(connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Update columns of rows; each row's id is in `which`."""
    if rows:
        columns: dict[str, Any] = {name: bindparam(name) for name in rows[0] if name != "which"}
        connection.execute(update(table).where(table.c.id == bindparam("which")).values(columns), rows)


def among(connection: Connection, column: ColumnElement[int], ids: Iterable[int]) -> ColumnElement[bool]:
    """`column IN ids`, with the ids passed as a single parameter."""
    if connection.dialect.name == "sqlite":
        listed = func.json_each(json.dumps(list(ids))).table_valued("value")
        return column.in_(select(listed.c.value))
    from sqlalchemy.dialects import postgresql

    return column == any_(literal(list(ids), postgresql.ARRAY(Integer)))


def rows_named(
    connection: Connection, column: Column[str], names: Iterable[str], *others: Column[Any]
) -> Iterator[tuple[Any, ...]]:
    """The rows whose column has one of the names: the name, the other columns, the id."""
    ordered = sorted(set(names))
    for first in range(0, len(ordered), _NAMES_PER_QUERY):
        part = ordered[first : first + _NAMES_PER_QUERY]
        statement = select(column, *others, column.table.c.id).where(column.in_(part))
        yield from map(tuple, connection.execute(statement))


def ids_of(connection: Connection, column: Column[str], names: Iterable[str]) -> dict[str, int]:
    """The ids of the rows whose unique column has one of the names."""
    return dict(rows_named(connection, column, names))


def ensure_ids(
    connection: Connection, column: Column[str], names: Iterable[str], **others: object
) -> dict[str, int]:
    """The ids of rows by their unique column; missing rows are inserted. Safe with concurrent writers.

    Args:
        others: the remaining columns of new rows.
    """
    distinct = set(names)
    ids = ids_of(connection, column, distinct)
    missing = sorted(distinct - ids.keys())  # in order, so that two writers cannot deadlock
    if missing:
        add_rows(connection, column.table, [{column.name: name, **others} for name in missing])
        ids.update(ids_of(connection, column, missing))
    return ids
