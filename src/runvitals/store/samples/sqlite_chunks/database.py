"""SQLite files as this store uses them: how they are opened, what is stamped on them, how an older format is
brought up to date.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

from runvitals.store import private_files
from runvitals.store.samples.contract import StoreError, StoreUnavailable

Migration = Callable[[sqlite3.Connection], None]


class DamagedFile(StoreError):
    """A file that SQLite cannot make sense of, now or later."""


_PAGE = 4096
"""Bytes. With 8,192, of which a chunk often needs a little more than half, files are 8 % larger, and reading
and committing cost the same.
"""
_CHECKPOINT_PAGES = 2000
_BUSY_S = 10.0
_WAL_LIMIT = 64 << 20
ASIDE = ".damaged-"
"""Behind the name of a file that was set aside, before a number."""


@dataclass(frozen=True)
class Format:
    """What a kind of file holds.

    Args:
        application_id: stamped on it, so that another database is not taken for one.
        schema: the statements that make a new one, of version 1 + len(migrations).
        migrations: the n-th brings version n + 1 to n + 2, in a transaction.
        readable_from: the oldest version that can be read as it is; None: only the newest.
    """

    application_id: int
    schema: str
    migrations: Sequence[Migration] = ()
    readable_from: int | None = None

    @property
    def version(self) -> int:
        return 1 + len(self.migrations)


def open_for_writing(path: str, form: Format) -> sqlite3.Connection:
    """The file, made if it is not there, and migrated if it is of an older version.

    Raises:
        StoreError: it is of a later version, or no such file; it cannot be opened or written.
    """
    with failing(path):
        if not os.path.exists(path):
            _make(path, form)
        private_files.take_back(path)
        connection = _connect(f"file:{_quoted(path)}?mode=rw")
        try:
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute(f"PRAGMA journal_size_limit={_WAL_LIMIT}")
            connection.execute(f"PRAGMA wal_autocheckpoint={_CHECKPOINT_PAGES}")
            version = _stamp(connection, path, form)
            if version < form.version:
                with transaction(connection):
                    for migrate in form.migrations[version - 1 :]:
                        migrate(connection)
                    connection.execute(f"PRAGMA user_version={form.version}")
        except BaseException:
            connection.close()
            raise
    return connection


def _make(path: str, form: Format) -> None:
    """A new file, which is whole when others see it."""
    new = f"{path}.new"
    for left_behind in (new, f"{new}-wal", f"{new}-shm", f"{new}-journal"):
        if os.path.exists(left_behind):
            os.unlink(left_behind)
    try:
        private_files.make(new)
    except OSError as error:
        raise StoreUnavailable(f"{path}: {error.strerror}") from error
    connection = _connect(f"file:{_quoted(new)}?mode=rw")
    try:
        # Both must be said before the first page is written.
        connection.execute(f"PRAGMA page_size={_PAGE}")
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
        connection.execute("PRAGMA journal_mode=WAL")
        with transaction(connection):
            for statement in form.schema.split(";\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id={form.application_id}")
            connection.execute(f"PRAGMA user_version={form.version}")
    finally:
        connection.close()
    os.replace(new, path)


class Connection(sqlite3.Connection):
    """
    Attributes:
        frozen: it takes the file for one that never changes, and sees nothing that is written later.
        generation: how often the month's file had been deleted when this one was opened (see `Months`).
    """

    frozen = False
    generation = 0


def open_for_reading(path: str, form: Format) -> Connection:
    """The file as it is; nothing is written, and other processes may write meanwhile, unless it is `frozen`.

    Raises:
        StoreError: it is of another version, or no such file; it cannot be opened.
    """
    uri = f"file:{_quoted(path)}?mode=ro"
    with failing(path):
        try:
            return _open_as_it_is(uri, path, form)
        except sqlite3.OperationalError:
            # On a file system that is read-only or full there is no room for the file by which readers and
            # writers agree. Where nothing waits in the write-ahead log, the file alone is the whole truth.
            if _waiting(path):
                raise
            connection = _open_as_it_is(f"{uri}&immutable=1", path, form)
            connection.frozen = True
            return connection


def _open_as_it_is(uri: str, path: str, form: Format) -> Connection:
    connection = _connect(uri)
    try:
        version = _stamp(connection, path, form)
        if version < (form.readable_from or form.version):
            raise StoreError(f"{path} is of format {version}: a server must have opened it once")
    except BaseException:
        connection.close()
        raise
    return connection


def open_as_it_is(path: str) -> sqlite3.Connection:
    """Any SQLite file, to be read; on a disk that is read-only as well.

    Raises:
        OSError: there is none.
        sqlite3.Error: it cannot be read.
    """
    os.stat(path)
    uri = f"file:{_quoted(path)}?mode=ro"
    try:
        return _first_read(uri)
    except sqlite3.OperationalError:
        if _waiting(path):
            raise
        return _first_read(f"{uri}&immutable=1")


def _first_read(uri: str) -> sqlite3.Connection:
    connection = _connect(uri)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def copy_frozen(path: str, into: str) -> None:
    """Copy a file that nobody can write to, and what waits in its write-ahead log.

    Raises:
        OSError: it cannot be read, or the copy not be written.
    """
    shutil.copyfile(path, into)
    if _waiting(path):
        private_files.make(f"{into}-wal")
        shutil.copyfile(f"{path}-wal", f"{into}-wal")
        with closing(sqlite3.connect(into)) as copied:
            copied.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def is_frozen(path: str) -> bool:
    """Whether the file lies on a file system that is read-only."""
    return hasattr(os, "statvfs") and bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def _waiting(path: str) -> bool:
    wal = f"{path}-wal"
    return os.path.exists(wal) and os.path.getsize(wal) > 0


def _connect(uri: str) -> Connection:
    connection = sqlite3.connect(
        uri, uri=True, timeout=_BUSY_S, isolation_level=None, check_same_thread=False, factory=Connection
    )
    try:
        connection.execute("PRAGMA temp_store=MEMORY")
        connection.execute("PRAGMA cache_size=-8000")
    except BaseException:
        connection.close()
        raise
    return connection


def _quoted(path: str) -> str:
    return os.path.abspath(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _stamp(connection: sqlite3.Connection, path: str, form: Format) -> int:
    """The version of a file's format."""
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application_id != form.application_id:
        raise DamagedFile(f"{path} is another program's database, or its first page is lost")
    if version > form.version:
        raise StoreError(
            f"{path} was written by a later version of runvitals (format {version}; this one reads up to "
            f"{form.version}): use that version"
        )
    return int(version)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing of what is written inside."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # some errors, a full disk among them, have already taken it back
            connection.execute("ROLLBACK")
        raise


@contextmanager
def snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """All reads inside see the same moment."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


@contextmanager
def failing(path: str) -> Iterator[None]:
    """SQLite's errors as the store's, with the file's name."""
    try:
        yield
    except sqlite3.OperationalError as error:  # full, read-only, cannot be opened, I/O error: may pass
        raise StoreUnavailable(f"{path}: {error}") from error
    except sqlite3.DatabaseError as error:  # will not
        is_damage = type(error) is sqlite3.DatabaseError  # malformed, not a database
        raise (DamagedFile if is_damage else StoreError)(f"{path}: {error}") from error


def set_aside(path: str) -> str:
    """Rename a damaged file, and what SQLite keeps beside it; its new path, which no other file has."""
    number = 1
    while os.path.lexists(f"{path}{ASIDE}{number}"):
        number += 1
    rename(path, f"{path}{ASIDE}{number}")
    return f"{path}{ASIDE}{number}"


def rename(path: str, into: str) -> None:
    """Rename a file and what SQLite keeps beside it."""
    for suffix in ("-wal", "-shm", ""):
        if os.path.lexists(path + suffix):
            os.rename(path + suffix, into + suffix)


def unlink(path: str) -> None:
    """Delete a file and what SQLite keeps beside it."""
    # The write-ahead log first: left behind alone, it would be played into the next file of this name.
    for suffix in ("-wal", "-shm", ""):
        if os.path.exists(path + suffix):
            os.unlink(path + suffix)


def size(path: str) -> int:
    """Bytes on disk, with what SQLite keeps beside the file."""
    return sum(os.path.getsize(name) for name in (path, f"{path}-wal", f"{path}-shm") if os.path.exists(name))


def give_back(connection: sqlite3.Connection) -> None:
    """Return the pages that nothing uses to the file system."""
    # Not execute(): that takes one step of it, and frees one page.
    connection.executescript("PRAGMA incremental_vacuum")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
