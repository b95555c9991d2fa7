"""Restores a backup into any pair of engines, where no server has stored anything yet.

The samples are restored first and the metadata last, completely or not at all: until then no server starts.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import closing, suppress
from typing import Final

from runvitals.base.private_folders import make_private
from runvitals.server.backup.backup import ServerStores, runs_copied
from runvitals.server.backup.manifest import (
    FILES,
    METADATA,
    Manifest,
    database_sums,
    digest_of,
    read_manifest,
    unpack,
)
from runvitals.server.backup.progress import Progress
from runvitals.server.database.backup import named_when_complete
from runvitals.server.database.copying import copy_database
from runvitals.server.database.database import Database, ReadOnlyDatabase, sqlite_path
from runvitals.server.database.issued_ids import HighestIds, IssuedIds
from runvitals.server.database.migration import check_known, is_empty
from runvitals.server.pairing.pairing import SKIPPED_IDS
from runvitals.store import private_files
from runvitals.store.errors import StoreError
from runvitals.store.files.backup import copy_contents
from runvitals.store.samples.clickhouse import ClickHouseStore, parse_address
from runvitals.store.samples.migration import migrate
from runvitals.store.samples.sqlite import SqliteChunks
from runvitals.store.samples.sqlite.backup import has_store
from runvitals.store.samples.sqlite.log import UNFINISHED

_PIECE_BYTES: Final = 1 << 20


def restore(source: str, stores: ServerStores, progress: Progress) -> Manifest:
    """Restore a backup, and compare what is written with its checksums; returns its manifest.

    Ids that may have been assigned after the backup are skipped: batches that wait on the disks of servers
    may have some.

    Raises:
        StoreError: the backup is damaged or of a later version, or something is there already.
        MetadataStoreError: the metadata could not be written.
        OSError: something could not be read or written.
    """
    manifest = read_manifest(source)
    check_known(manifest.revision, source)
    _check_no_metadata(stores.metadata)
    stores.check_metadata_folder()
    make_private(stores.folder)
    if stores.clickhouse is None and has_store(stores.folder):
        raise StoreError(f"there is a store in {stores.folder} already: move it away first")
    with tempfile.TemporaryDirectory(prefix=".restore-", dir=stores.folder) as scratch:
        if not os.path.isdir(source):
            progress.stage(f"unpacking {source}")
            unpack(source, os.path.join(scratch, "backup"))
            source = os.path.join(scratch, "backup")
        sums = database_sums(source, manifest)
        progress.stage(f"restoring samples to {stores.samples}")
        _restore_samples(source, sums, stores, scratch, progress)
        progress.stage(f"restoring files of runs to {stores.contents}")
        _restore_contents(source, stores.contents, manifest)
        progress.stage("restoring the metadata store")
        _restore_metadata(source, sums[METADATA], stores.metadata, scratch, progress)
    return manifest


def _check_no_metadata(address: str) -> None:
    path = sqlite_path(address)
    if path is not None:
        if os.path.exists(path):
            raise StoreError(f"{path} exists already: move it away first")
        return
    with closing(ReadOnlyDatabase(address)) as database:
        if not is_empty(database):
            raise StoreError(
                f"the database {database.name} is not empty: restore into a new one, made by CREATE DATABASE"
            )


def _restore_samples(
    source: str, sums: Mapping[str, str], stores: ServerStores, scratch: str, progress: Progress
) -> None:
    """Copy all samples to an empty store."""
    names = [name for name in sums if name != METADATA]
    if stores.clickhouse is None:
        for name in names:
            _copy_checked(os.path.join(source, name), os.path.join(stores.folder, name), sums[name])
        return
    copy = os.path.join(scratch, "samples")  # opening it would change the backup
    make_private(copy)
    for name in names:
        _copy_checked(os.path.join(source, name), os.path.join(copy, name), sums[name])
    address = parse_address(stores.clickhouse)
    with ClickHouseStore(address, os.path.join(scratch, "waiting")) as samples:
        if samples.pairing is not None or not samples.is_new:
            raise StoreError(
                f"the database {samples.name} is not empty: restore into a new one, made by CREATE DATABASE"
            )
        with SqliteChunks(copy) as opened:
            migrate(opened, samples, runs_copied(progress))


def _copy_checked(source: str, target: str, sha256: str) -> None:
    """Copy a file.

    Raises:
        StoreError: it is not the one that was backed up. The copy has another name.
    """
    unfinished = f"{target}{UNFINISHED}"  # no server starts with a log that has this name
    with suppress(FileNotFoundError):
        os.unlink(unfinished)  # of a restore that was killed
    private_files.create(unfinished, exclusive=True)
    with open(source, "rb") as reading, open(unfinished, "wb") as writing:
        shutil.copyfileobj(reading, writing, _PIECE_BYTES)
        writing.flush()
        os.fsync(writing.fileno())
    with open(unfinished, "rb") as written:
        if digest_of(written)[0] != sha256:
            raise StoreError(f"{source} is damaged: nothing is used of it; try another backup")
    os.replace(unfinished, target)


def _restore_contents(source: str, into: str, manifest: Manifest) -> None:
    count = 0

    def check(sha256: str, digest: str, _: int) -> None:
        nonlocal count
        count += 1
        if digest != sha256 and sha256 not in manifest.damaged:
            raise StoreError(
                f"{os.path.join(source, FILES, sha256[:2], sha256)} is damaged: try another backup"
            )

    copy_contents(os.path.join(source, FILES), into, check)
    if count < manifest.contents:
        raise StoreError(
            f"{os.path.join(source, FILES)} has {count:,} files instead of {manifest.contents:,}: "
            "`runvitals restore --check` names those that are missing"
        )


def _restore_metadata(source: str, sha256: str, address: str, scratch: str, progress: Progress) -> None:
    """Restore the metadata, which servers see when all is there."""
    path = sqlite_path(address)
    if path is not None:
        with named_when_complete(path) as unfinished:
            _copy_and_skip_ids(source, sha256, unfinished)
        return
    copy = os.path.join(scratch, METADATA)
    _copy_and_skip_ids(source, sha256, copy)
    with closing(Database(copy)) as database, closing(Database(address)) as target:
        copy_database(database, target, progress.far)


def _copy_and_skip_ids(source: str, sha256: str, into: str) -> None:
    _copy_checked(os.path.join(source, METADATA), into, sha256)
    with closing(Database(into)) as database:
        IssuedIds(database).skip_to(HighestIds(0, 0), SKIPPED_IDS)
