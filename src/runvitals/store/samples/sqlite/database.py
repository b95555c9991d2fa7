"""Opens the store's SQLite files, checks their format version, and migrates older ones."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

from runvitals.store import database_files, private_files
from runvitals.store.samples.cold.reading import ColdReader
from runvitals.store.samples.interface import StoreError, StoreUnavailable

Migration = Callable[[sqlite3.Connection], None]


class DamagedFile(StoreError):
    """A file is damaged, or is not a file of this store."""


_PAGE_BYTES = 4096
"""With 8,192, of which a chunk often needs a little more than half, files are 8 % larger, and reading and
committing cost the same.
"""
_CHECKPOINT_PAGES = 2000
_PAGES_KIB = 2000
"""Pages that each connection keeps. With 8,000, the files of a run of 10 million values took 28 MB more of a
server's memory; the system has the pages in its cache anyway.
"""
_BUSY_S = 10.0
_WAL_LIMIT = 64 << 20
SET_ASIDE_SUFFIX = ".damaged-"
"""Suffix of a file that was set aside, followed by a number."""


@dataclass(frozen=True)
class Format:
    """The format of a kind of file.

    Args:
        application_id: stored in the file header, to recognize other databases.
        schema: the statements that create a new file, of version 1 + len(migrations).
        migrations: the n-th migrates version n + 1 to n + 2, in a transaction.
        readable_from: the oldest version that can be read without migration; None: only the newest.
        optional: number of later versions that only have more tables, which files get when they need them.
    """

    application_id: int
    schema: str
    migrations: Sequence[Migration] = ()
    readable_from: int | None = None
    optional: int = 0

    @property
    def version(self) -> int:
        """The version of the newest files."""
        return 1 + len(self.migrations)


def open_for_writing(path: str, file_format: Format) -> FileConnection:
    """Open a file; create it if it does not exist, and migrate it if it is of an older version.

    Raises:
        StoreError: it is of a later version or not a file of this format, or could not be opened.
    """
    _check_kind(path)
    with store_errors(path):
        if not os.path.exists(path):
            _create(path, file_format)
        private_files.restrict(path)
        connection = _connect(f"file:{_quote_path(path)}?mode=rw")
        try:
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute(f"PRAGMA journal_size_limit={_WAL_LIMIT}")
            connection.execute(f"PRAGMA wal_autocheckpoint={_CHECKPOINT_PAGES}")
            version = _check_version(connection, path, file_format)
            if version < file_format.version:
                with transaction(connection):
                    for migrate in file_format.migrations[version - 1 :]:
                        migrate(connection)
                    connection.execute(f"PRAGMA user_version={file_format.version}")
        except BaseException:
            connection.close()
            raise
    return connection


def _create(path: str, file_format: Format) -> None:
    """Create a file. It gets its name when it is complete."""
    new = f"{path}.new"
    for leftover in (new, f"{new}-wal", f"{new}-shm", f"{new}-journal"):
        if os.path.exists(leftover):
            os.unlink(leftover)
    try:
        private_files.create(new)
    except OSError as error:
        raise StoreUnavailable(f"{path}: {error.strerror}") from error
    connection = _connect(f"file:{_quote_path(new)}?mode=rw")
    try:
        # These must be set before the first page is written.
        connection.execute(f"PRAGMA page_size={_PAGE_BYTES}")
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
        connection.execute("PRAGMA journal_mode=WAL")
        with transaction(connection):
            for statement in file_format.schema.split(";\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id={file_format.application_id}")
            connection.execute(f"PRAGMA user_version={file_format.version}")
    finally:
        connection.close()
    os.replace(new, path)


class FileConnection(sqlite3.Connection):
    """A connection to a file of the store.

    Attributes:
        immutable: SQLite assumes that the file never changes; later writes are not visible.
        generation: how often the month file had been deleted when it was opened (see `MonthFiles`).
        cold: reads the values of its cold chunks.
    """

    immutable = False
    generation = 0
    cold: ColdReader | None = None


def open_for_reading(path: str, file_format: Format) -> FileConnection:
    """Open a file for reading. Other processes may write to it, unless the connection is `immutable`.

    Raises:
        StoreError: it is of another version or not a file of this format, or could not be opened.
    """
    uri = f"file:{_quote_path(path)}?mode=ro"
    _check_kind(path)
    with store_errors(path):
        try:
            return _open_checked(uri, path, file_format)
        except sqlite3.OperationalError:
            # On a read-only or full file system, SQLite cannot create the shared-memory file. If the
            # write-ahead log is empty, the main file is complete.
            if _has_wal(path):
                raise
            connection = _open_checked(f"{uri}&immutable=1", path, file_format)
            connection.immutable = True
            return connection


def _check_kind(path: str) -> None:
    """Check that the path and its companions are files.

    Raises:
        DamagedFile: there is no file at the path, but a folder, or a pipe, which would be waited for.
        StoreError: the same of one of its companion files.
    """
    if os.path.lexists(path) and not os.path.isfile(path):
        raise DamagedFile(f"{path} is not a file")
    obstacle = database_files.obstacle(path)
    if obstacle is not None:
        raise StoreError(obstacle)


def _open_checked(uri: str, path: str, file_format: Format) -> FileConnection:
    connection = _connect(uri)
    try:
        version = _check_version(connection, path, file_format)
        if version < (file_format.readable_from or file_format.version):
            raise StoreError(f"{path} is of format {version}: start a server once to migrate it")
    except BaseException:
        connection.close()
        raise
    return connection


def open_read_only(path: str) -> sqlite3.Connection:
    """Open any SQLite file for reading, also on a read-only file system.

    Raises:
        OSError: it does not exist, or is not a file.
        sqlite3.Error: it could not be read.
    """
    os.stat(path)
    if not os.path.isfile(path):
        raise OSError(f"{path} is not a file")  # SQLite would wait for a pipe
    obstacle = database_files.obstacle(path)
    if obstacle is not None:
        raise OSError(obstacle)
    uri = f"file:{_quote_path(path)}?mode=ro"
    try:
        return _open_and_read(uri)
    except sqlite3.OperationalError:
        if _has_wal(path):
            raise
        return _open_and_read(f"{uri}&immutable=1")


def _open_and_read(uri: str) -> sqlite3.Connection:
    connection = _connect(uri)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def copy_immutable(path: str, into: str) -> None:
    """Copy a file on a read-only file system, with the content of its write-ahead log.

    Raises:
        OSError: it could not be read, or the copy not written.
    """
    shutil.copyfile(path, into)
    if _has_wal(path):
        private_files.create(f"{into}-wal")
        shutil.copyfile(f"{path}-wal", f"{into}-wal")
        with closing(sqlite3.connect(into)) as copied:
            copied.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def is_on_read_only_disk(path: str) -> bool:
    """Return whether the file is on a read-only file system."""
    return hasattr(os, "statvfs") and bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def _has_wal(path: str) -> bool:
    wal = f"{path}-wal"
    return os.path.exists(wal) and os.path.getsize(wal) > 0


def _connect(uri: str) -> FileConnection:
    connection = sqlite3.connect(
        uri, uri=True, timeout=_BUSY_S, isolation_level=None, check_same_thread=False, factory=FileConnection
    )
    try:
        connection.execute("PRAGMA temp_store=MEMORY")
        connection.execute(f"PRAGMA cache_size=-{_PAGES_KIB}")
    except BaseException:
        connection.close()
        raise
    return connection


def _quote_path(path: str) -> str:
    return os.path.abspath(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _check_version(connection: sqlite3.Connection, path: str, file_format: Format) -> int:
    """Return the format version of a file.

    Raises:
        StoreError: it is of a later version, or not a file of this format.
    """
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application_id != file_format.application_id:
        raise DamagedFile(f"{path} is the database of another program, or its header is damaged")
    newest = file_format.version + file_format.optional
    if version > newest:
        raise StoreError(
            f"{path} was written by a later version of runvitals (format {version}; this one reads up to "
            f"{newest}): use that version"
        )
    return int(version)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """A write transaction, rolled back on errors."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # some errors, such as a full disk, have already rolled back
            connection.execute("ROLLBACK")
        raise


@contextmanager
def snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """A read transaction: all reads see the same state."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


@contextmanager
def store_errors(path: str) -> Iterator[None]:
    """Convert SQLite's errors to the store's, with the path of the file."""
    try:
        yield
    except sqlite3.OperationalError as error:  # full, read-only, not accessible, I/O error: may be temporary
        raise StoreUnavailable(f"{path}: {error}") from error
    except sqlite3.DatabaseError as error:  # permanent
        is_damage = type(error) is sqlite3.DatabaseError  # malformed, not a database
        raise (DamagedFile if is_damage else StoreError)(f"{path}: {error}") from error


def set_aside(path: str) -> str:
    """Rename a damaged file and its companion files. Returns the new, unused path."""
    into = unused_path(f"{path}{SET_ASIDE_SUFFIX}")
    rename(path, into)
    return into


def unused_path(prefix: str) -> str:
    """Return a path that does not exist: the prefix and the first number that is free."""
    number = 1
    while os.path.lexists(f"{prefix}{number}"):
        number += 1
    return f"{prefix}{number}"


def rename(path: str, into: str) -> None:
    """Rename a file and its companion files."""
    for suffix in ("-wal", "-shm", ""):
        if os.path.lexists(path + suffix):
            os.rename(path + suffix, into + suffix)


def unlink(path: str) -> None:
    """Delete a file and its companion files."""
    # The write-ahead log first: SQLite would apply a leftover one to the next file of this name.
    for suffix in ("-wal", "-shm", ""):
        if os.path.exists(path + suffix):
            os.unlink(path + suffix)


def size(path: str) -> int:
    """Size on disk in bytes, companion files included."""
    return sum(os.path.getsize(name) for name in (path, f"{path}-wal", f"{path}-shm") if os.path.exists(name))


def release_some_pages(connection: sqlite3.Connection, count: int) -> None:
    """Return some unused pages to the file system."""
    connection.executescript(f"PRAGMA incremental_vacuum({count:d})")


def release_free_pages(connection: sqlite3.Connection) -> None:
    """Return unused pages to the file system."""
    # execute() would run one step of it and release a single page.
    connection.executescript("PRAGMA incremental_vacuum")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
