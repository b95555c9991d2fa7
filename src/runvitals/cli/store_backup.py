"""`runvitals store backup` and `restore`, for every pair of engines.

A backup is a folder: the samples as a store in a folder has them, the contents of files, and the metadata as
a file of SQLite or a dump of PostgreSQL. The samples are copied first: what they refer to is in the metadata
by the time these are copied. They are also restored first: until the metadata are there, no server starts.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from contextlib import closing
from typing import TYPE_CHECKING, Any

from runvitals.base.private_folders import make_private
from runvitals.base.terminal_text import inert
from runvitals.cli.store_migration import Progress
from runvitals.cli.store_options import (
    METADATA_FILE,
    add_metadata,
    contents_folder,
    is_clickhouse,
    metadata_address,
    store_folder,
)
from runvitals.cli.store_repair import ids_in_clickhouse

if TYPE_CHECKING:
    from runvitals.store.samples.clickhouse import ClickHouseStore

DUMP = "metadata.dump"
_UNFINISHED = "metadata.unfinished"
"""The name of the metadata until the backup is complete: an interrupted one cannot be restored."""


def add(actions: Any) -> None:
    """Add the two commands."""
    backup = actions.add_parser(
        "backup", help="copy samples, metadata and files into a folder; works while servers use them"
    )
    restore = actions.add_parser("restore", help="copy a backup to where no server has stored anything yet")
    backup.add_argument("into", metavar="FOLDER", help="an empty folder or a new one")
    restore.add_argument("backup", metavar="BACKUP", help="the folder of a backup")
    for action in (backup, restore):
        add_metadata(action)


def backup(arguments: argparse.Namespace) -> int:
    """Copy samples, files and metadata into a folder, while servers use them."""
    from runvitals.store.errors import MetadataStoreError

    try:
        _backup(arguments, arguments.into)
    except MetadataStoreError as error:
        raise OSError(str(error)) from None
    return 0


def restore(arguments: argparse.Namespace) -> int:
    """Copy a backup to where no server has stored anything yet."""
    from runvitals.store.errors import MetadataStoreError

    try:
        _restore(arguments, arguments.backup)
    except MetadataStoreError as error:
        raise OSError(str(error)) from None
    return 0


# Backup


def _backup(arguments: argparse.Namespace, into: str) -> None:
    from runvitals.server.database.database import sqlite_path
    from runvitals.server.pairing.check import require_match
    from runvitals.store.files.backup import copy_contents
    from runvitals.store.samples.sqlite import stored_ids
    from runvitals.store.samples.sqlite.backup import cold_of, make_empty

    folder, address = store_folder(arguments), metadata_address(arguments)
    if is_clickhouse(arguments):
        name, stored = ids_in_clickhouse(arguments.store)
    else:
        name, stored = folder, stored_ids.read(folder)
    path = sqlite_path(address)
    has_metadata = path is None or os.path.exists(path)
    if has_metadata:
        require_match(name, stored, address)
    make_empty(into)
    copied = _copy_samples(arguments, into)
    files = contents_folder(folder), contents_folder(into)
    copied += copy_contents(*files)
    if has_metadata:
        unfinished = os.path.join(into, _UNFINISHED)
        _copy_metadata(address, unfinished)
        copied += 1 + copy_contents(*files)
        os.replace(unfinished, os.path.join(into, METADATA_FILE if path else DUMP))
    print(inert(f"{into}: {copied} files copied from {name}"))
    cold, cold_bytes = cold_of(into)
    if cold_bytes:
        _warn(f"{cold_bytes / 1e6:.1f} MB of old samples are in {cold}, and not part of the backup")
    elsewhere, in_buckets = _in_buckets(address) if has_metadata else ([], 0)
    if in_buckets:
        where = ", ".join(elsewhere)
        _warn(f"{in_buckets / 1e6:.1f} MB of files of teams are in {where}, and not part of the backup")
    if not has_metadata:
        _warn(f"{folder} has no {METADATA_FILE}, so {into} has no metadata: repeat it with --metadata")


def _in_buckets(address: str) -> tuple[list[str], int]:
    """Return the buckets in which teams have files, and the bytes of these files."""
    from contextlib import closing

    from runvitals.server.buckets.storage.buckets import BucketTable
    from runvitals.server.database.database import ReadOnlyDatabase
    from runvitals.server.database.migration import is_current
    from runvitals.server.files.storage.stored_files import StoredFileTable

    with closing(ReadOnlyDatabase(address)) as database:
        if not is_current(database):
            return [], 0
        table, total = BucketTable(database), 0
        names = set()
        for team_id in StoredFileTable(database).places()[1:]:
            row, (_, size) = table.of_team(team_id), table.use(team_id)
            total += size
            if row is not None and size:
                names.add(str(row.location))
        return sorted(names), total


def _copy_samples(arguments: argparse.Namespace, into: str) -> int:
    """Copy all samples; return the number of files that they take."""
    from runvitals.store.samples.migration import migrate
    from runvitals.store.samples.sqlite import SqliteChunks
    from runvitals.store.samples.sqlite.backup import copy_files

    if not is_clickhouse(arguments):
        return copy_files(store_folder(arguments), into)
    with (
        tempfile.TemporaryDirectory(prefix="runvitals-backup-") as nothing_waits,
        _open_clickhouse(arguments, nothing_waits) as samples,
        SqliteChunks(into) as copy,
    ):
        migrate(samples, copy, Progress())
    return sum(entry.name.endswith(".db") for entry in os.scandir(into))


def _copy_metadata(address: str, into: str) -> None:
    from runvitals.server.database import backup
    from runvitals.server.database.database import sqlite_path

    path = sqlite_path(address)
    if path is None:
        backup.dump_postgresql(address, into)
    else:
        backup.copy_sqlite(path, into)


# Restore


def _restore(arguments: argparse.Namespace, source: str) -> None:
    from runvitals.store.files.backup import copy_contents
    from runvitals.store.samples.sqlite import log

    log.existing_path(source)
    folder, address = store_folder(arguments), metadata_address(arguments)
    _check_metadata(source, address)
    make_private(folder)
    copied = _restore_samples(arguments, source)
    copied += copy_contents(contents_folder(source), contents_folder(folder))
    _restore_metadata(source, address)
    print(inert(f"{source}: {copied + 1} files restored to {arguments.store or folder}"))


def _check_metadata(source: str, address: str) -> None:
    """Check that the backup has metadata of the kind of the address, where there are none yet.

    Raises:
        ValueError: it has not.
        StoreError: there are some.
    """
    from runvitals.server.database.database import ReadOnlyDatabase, sqlite_path
    from runvitals.server.database.migration import is_empty
    from runvitals.store.samples.interface import StoreError

    path = sqlite_path(address)
    if not os.path.exists(os.path.join(source, METADATA_FILE if path else DUMP)):
        if os.path.exists(os.path.join(source, DUMP)):
            raise ValueError(f"{source} has metadata of PostgreSQL: specify --metadata postgresql://…")
        if os.path.exists(os.path.join(source, METADATA_FILE)):
            raise ValueError(f"{source} has metadata of SQLite: leave out --metadata, or specify a file")
        raise ValueError(f"{source} has no metadata: neither {METADATA_FILE} nor {DUMP}")
    if path is not None:
        if os.path.exists(path):
            raise StoreError(f"{path} exists already: move it away first")
        return
    with closing(ReadOnlyDatabase(address)) as database:
        if not is_empty(database):
            raise StoreError(
                f"the database {database.name} is not empty: restore into a new one, made by CREATE DATABASE"
            )


def _restore_samples(arguments: argparse.Namespace, source: str) -> int:
    """Copy all samples to an empty store; return the number of files that they took."""
    from runvitals.store.samples.interface import StoreError
    from runvitals.store.samples.migration import migrate
    from runvitals.store.samples.sqlite import SqliteChunks
    from runvitals.store.samples.sqlite.backup import copy_files, has_store

    folder = store_folder(arguments)
    if not is_clickhouse(arguments):
        if has_store(folder):
            raise StoreError(f"there is a store in {folder} already: move it away first")
        return copy_files(source, folder)
    with (
        tempfile.TemporaryDirectory(prefix="runvitals-restore-", dir=folder) as copy,
        _open_clickhouse(arguments, os.path.join(copy, "waiting")) as samples,
    ):
        if samples.pairing is not None or not samples.is_new:
            raise StoreError(
                f"the database {samples.name} is not empty: restore into a new one, made by CREATE DATABASE"
            )
        copied = copy_files(source, os.path.join(copy, "store"))  # opening it would change the backup
        with SqliteChunks(os.path.join(copy, "store")) as opened:
            migrate(opened, samples, Progress())
    return copied


def _restore_metadata(source: str, address: str) -> None:
    """Restore the metadata, and skip ids that may have been assigned after the backup.

    Batches that wait on the disks of servers may have such ids, which must not be assigned again.
    """
    from runvitals.server.database import backup
    from runvitals.server.database.database import Database, sqlite_path
    from runvitals.server.database.issued_ids import HighestIds, IssuedIds
    from runvitals.server.pairing.pairing import SKIPPED_IDS

    path = sqlite_path(address)
    if path is None:
        backup.restore_postgresql(os.path.join(source, DUMP), address)
    else:
        backup.copy_sqlite(os.path.join(source, METADATA_FILE), path)
    with closing(Database(address)) as database:
        IssuedIds(database).skip_to(HighestIds(0, 0), SKIPPED_IDS)


# Both


def _open_clickhouse(arguments: argparse.Namespace, folder: str) -> ClickHouseStore:
    """Open the store in ClickHouse.

    Args:
        folder: for batches that wait, of which there are none.
    """
    from runvitals.store.samples.clickhouse import ClickHouseStore, parse_address

    return ClickHouseStore(parse_address(arguments.store), folder)


def _warn(text: str) -> None:
    print(inert(text), file=sys.stderr)
