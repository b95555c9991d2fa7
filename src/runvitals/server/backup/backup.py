"""Makes a backup of a whole server, while servers use it.

It has one form for every pair of engines: the samples as a store in a folder has them, the contents of files,
and the metadata as a file of SQLite. The samples are copied first: what they refer to is in the metadata by
the time these are copied. The manifest is written last.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Final, NamedTuple, TypedDict

from runvitals.server.backup.left_out import not_included
from runvitals.server.backup.manifest import FILES, METADATA, TAR, Manifest, Sums, pack, write_manifest
from runvitals.server.backup.progress import Progress
from runvitals.server.database.backup import copy_sqlite
from runvitals.server.database.copying import copy_database, count_rows
from runvitals.server.database.database import Database, ReadOnlyDatabase, sqlite_path
from runvitals.server.database.migration import present
from runvitals.server.pairing.check import require_match
from runvitals.store.errors import StoreError
from runvitals.store.files.backup import copy_contents
from runvitals.store.samples.clickhouse import ClickHouseStore, parse_address
from runvitals.store.samples.clickhouse import stored_ids as clickhouse_ids
from runvitals.store.samples.clickhouse.connection import ClickHouse
from runvitals.store.samples.clickhouse.schema import has_tables
from runvitals.store.samples.migration import MigrationTotals, migrate
from runvitals.store.samples.sqlite import SqliteChunks, stored_ids
from runvitals.store.samples.sqlite.backup import copy_files, has_store, make_empty
from runvitals.store.samples.sqlite.stored_ids import StoredIds
from runvitals.version import __version__

_UNFINISHED: Final = ".unfinished"


class ServerStores(NamedTuple):
    """Where a server keeps everything.

    Attributes:
        folder: of the store; with ClickHouse, of what else the server keeps.
        clickhouse: address of the samples; None: they are in the folder.
        metadata: address of the metadata store.
        contents: the folder with contents of files, which does not exist if they are in a bucket.
    """

    folder: str
    clickhouse: str | None
    metadata: str
    contents: str

    @property
    def samples(self) -> str:
        """The name of the sample store, without a password."""
        return str(parse_address(self.clickhouse)) if self.clickhouse else self.folder

    def check_metadata_folder(self) -> None:
        """Raise StoreError unless a file for metadata can be made: only the folder of the store is made."""
        path = sqlite_path(self.metadata)
        folder = "" if path is None else os.path.dirname(os.path.abspath(path))
        if folder and folder != os.path.abspath(self.folder) and not os.path.isdir(folder):
            raise StoreError(f"the folder {folder} of the metadata store does not exist: make it first")

    def stored_ids(self) -> StoredIds:
        """Return the ids in the sample store, or raise StoreError."""
        if self.clickhouse is None:
            return stored_ids.read(self.folder)
        with closing(ClickHouse(parse_address(self.clickhouse))) as clickhouse:
            return clickhouse_ids.read(clickhouse)

    def has_samples(self) -> bool:
        """Return whether there is a sample store, which may be empty, or raise StoreError."""
        if self.clickhouse is None:
            return os.path.isdir(self.folder) and has_store(self.folder)
        with closing(ClickHouse(parse_address(self.clickhouse))) as clickhouse:
            return has_tables(clickhouse)


def back_up(stores: ServerStores, into: str, progress: Progress) -> Manifest:
    """Back up a server, which may be running, into a new folder or a new tar file; returns what is in it.

    Raises:
        StoreError: samples and metadata do not belong together, or something is there already.
        MetadataStoreError: the metadata could not be copied.
        OSError: something could not be read or written.
    """
    path = sqlite_path(stores.metadata)
    if path is not None and not os.path.exists(path):
        raise StoreError(f"there is no metadata store in {path}: name the server's with --metadata")
    require_match(stores.samples, stores.stored_ids(), stores.metadata)
    if not into.endswith(TAR):
        make_empty(into)
        return _fill(stores, into, progress)
    folder = f"{into}{_UNFINISHED}"
    for new_path in (into, folder):
        if os.path.lexists(new_path):
            raise StoreError(f"{new_path} exists already: choose another name, or remove it")
    try:
        make_empty(folder)
        manifest = _fill(stores, folder, progress)
        progress.stage(f"packing {manifest.bytes / 1e6:,.0f} MB into {into}")
        pack(folder, into)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return manifest


def _fill(stores: ServerStores, folder: str, progress: Progress) -> Manifest:
    begun_ms = time.time_ns() // 1_000_000
    progress.stage(f"copying samples from {stores.samples}")
    _copy_samples(stores, folder, progress)
    with Sums(folder, progress, _bytes_below(stores.contents) + _bytes_below(folder)) as sums:
        contents = os.path.join(folder, FILES)
        progress.stage(f"copying files of runs from {stores.contents}")
        copy_contents(stores.contents, contents, sums.add_content)
        progress.stage(f"copying the metadata store {_name(stores.metadata)}")
        _copy_metadata(stores.metadata, os.path.join(folder, METADATA), progress)
        copy_contents(stores.contents, contents, sums.add_content)  # those that the metadata know meanwhile
        progress.stage("computing checksums")
        facts = _facts(folder)
        for name in sorted(os.listdir(folder)):
            if name.endswith(".db"):
                sums.add_file(name)
            elif name.endswith(("-shm", "-wal")):  # empty: nobody has the databases open any more
                os.unlink(os.path.join(folder, name))
    manifest = Manifest(
        runvitals=__version__,
        begun_ms=begun_ms,
        samples=stores.samples,
        metadata=_name(stores.metadata),
        **facts,
        files=sums.files,
        contents=sums.contents,
        bytes=sums.bytes,
        damaged=sums.damaged,
        sums=sums.digest,
    )
    write_manifest(folder, manifest)
    return manifest


def _bytes_below(folder: str) -> int:
    """Return the bytes of all files below a folder, as far as they can be read."""
    total_bytes = 0
    for directory, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total_bytes += os.stat(os.path.join(directory, name)).st_size
    return total_bytes


class _Facts(TypedDict):
    """What a manifest says of the databases in a backup."""

    revision: str
    store_id: str | None
    rows: dict[str, int]
    not_included: list[str]


def _facts(folder: str) -> _Facts:
    pairing = stored_ids.pairing_of(folder)
    with closing(ReadOnlyDatabase(os.path.join(folder, METADATA))) as database:
        return _Facts(
            revision=present(database) or "",
            store_id=pairing and pairing.id,
            rows=count_rows(database),
            not_included=list(not_included(folder, database)),
        )


def _copy_samples(stores: ServerStores, folder: str, progress: Progress) -> None:
    if stores.clickhouse is None:
        copy_files(stores.folder, folder)
        return
    address = parse_address(stores.clickhouse)
    with (
        tempfile.TemporaryDirectory(prefix="runvitals-backup-") as nothing_waits,
        ClickHouseStore(address, nothing_waits) as samples,
        SqliteChunks(folder) as copy,
    ):
        migrate(samples, copy, runs_copied(progress))


def runs_copied(progress: Progress) -> Callable[[MigrationTotals], None]:
    """Return what writes how many runs were copied to another engine."""
    return lambda totals: progress.far(f"{totals.copied} runs copied, {totals.unchanged} unchanged")


def _copy_metadata(address: str, into: str, progress: Progress) -> None:
    path = sqlite_path(address)
    if path is not None:
        copy_sqlite(path, into)
        return
    with closing(Database(address)) as source, closing(Database(into)) as target:
        copy_database(source, target, progress.far)


def _name(metadata: str) -> str:
    """Return the address of a metadata store without its password."""
    with closing(ReadOnlyDatabase(metadata)) as database:
        return database.name
