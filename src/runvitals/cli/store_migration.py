"""`runvitals store migrate`: copies samples or metadata between engines."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

from runvitals.cli.backup import write_progress

if TYPE_CHECKING:
    from runvitals.store.samples.clickhouse import ClickHouseStore
    from runvitals.store.samples.sqlite import SqliteChunks

_COPY = ".migrate-"


def run(source: str, target: str) -> int:
    """Copy all samples, or all metadata, from a store to another; return the exit code."""
    if os.path.abspath(source) == os.path.abspath(target):
        raise ValueError("FROM and TO are the same store")
    kinds = [_is_metadata(address) for address in (source, target)]
    if all(kinds):
        return _move_metadata(source, target)
    if any(kinds):
        raise ValueError(
            "FROM and TO must both have samples (a folder, clickhouse://…) or both metadata (catalogue.db, "
            "postgresql://…)"
        )
    return _copy_samples(source, target)


def _is_metadata(address: str) -> bool:
    return address.startswith(("postgres", "sqlite:")) or address.endswith(".db")


def _move_metadata(source: str, target: str) -> int:
    from runvitals.server.backup.progress import Progress
    from runvitals.server.database.copying import move_database
    from runvitals.store.errors import MetadataStoreError

    progress = Progress(write_progress)
    try:
        copies = move_database(source, target, progress.far)
    except MetadataStoreError as error:
        raise OSError(str(error)) from None
    for copy in copies:
        if copy.rows:
            print(f"{copy.name}: {copy.rows:,} rows, digest {copy.digest}")
    rows = sum(copy.rows for copy in copies)
    print(
        f"{len(copies)} tables with {rows:,} rows copied and compared: start the server with --metadata and "
        "the new store, which it then accepts alone"
    )
    return 0


def _copy_samples(source: str, target: str) -> int:
    from runvitals.server.backup.backup import runs_copied
    from runvitals.server.backup.progress import Progress
    from runvitals.store.samples.migration import migrate

    with ExitStack() as stack:
        source_store, target_store = _open(stack, source, reads_only=True), _open(stack, target)
        totals = migrate(source_store, target_store, runs_copied(Progress(write_progress)))
        print(
            f"{totals.copied} runs with {totals.samples:,} samples copied from {source} "
            f"to {target_store.name}, {totals.unchanged} were there already"
        )
    if totals.changing:
        print(
            f"{totals.changing} runs got samples meanwhile: end the server and copy again before you start "
            "it with the new store",
            file=sys.stderr,
        )
    return 0


def _open(stack: ExitStack, address: str, reads_only: bool = False) -> SqliteChunks | ClickHouseStore:
    from runvitals.cli.store_options import is_clickhouse_address
    from runvitals.store.samples.clickhouse import ClickHouseStore, parse_address
    from runvitals.store.samples.sqlite import SqliteChunks, log
    from runvitals.store.samples.sqlite.backup import backup
    from runvitals.store.samples.sqlite.folder_lock import FolderLock

    if is_clickhouse_address(address):
        # Its folder is for batches that wait, of which a copy has none.
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="runvitals-migrate-"))
        store: SqliteChunks | ClickHouseStore = ClickHouseStore(parse_address(address), folder)
    elif reads_only:
        log.existing_path(address)
        # A copy beside it: a server may have it open, and goes on to write.
        _remove_copies(address)
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix=_COPY, dir=address))
        stack.enter_context(closing(FolderLock(folder)))
        copy = os.path.join(folder, "copy")
        backup(address, copy)
        store = SqliteChunks(copy)
    else:
        store = SqliteChunks(address)
    stack.callback(store.close)
    return store


def _remove_copies(folder: str) -> None:
    """Remove the copies of migrations that were killed."""
    from runvitals.store.samples.interface import StoreError
    from runvitals.store.samples.sqlite.folder_lock import FolderLock

    for entry in os.scandir(folder):
        if entry.name.startswith(_COPY):
            try:
                FolderLock(entry.path).close()
            except StoreError:
                continue  # it runs
            shutil.rmtree(entry.path)
