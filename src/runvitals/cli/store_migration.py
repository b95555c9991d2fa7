"""`runvitals store migrate`: copies samples between engines."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runvitals.store.samples.clickhouse import ClickHouseStore
    from runvitals.store.samples.migration import MigrationTotals
    from runvitals.store.samples.sqlite import SqliteChunks

_REPORTED_S = 10.0
_COPY = ".migrate-"


def run(source: str, target: str) -> int:
    """Copy all samples from a store to another; return the exit code."""
    from runvitals.store.samples.migration import migrate

    if source == target:
        raise ValueError("FROM and TO are the same store")
    with ExitStack() as stack:
        read, written = _open(stack, source, reads_only=True), _open(stack, target)
        totals = migrate(read, written, Progress())
        print(
            f"{totals.copied} runs with {totals.samples:,} samples copied from {source} to {written.name}, "
            f"{totals.unchanged} were there already"
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


class Progress:
    """Prints the progress every ten seconds."""

    def __init__(self) -> None:
        self._reported_s = time.monotonic()

    def __call__(self, totals: MigrationTotals) -> None:
        """Print the progress if the last time was ten seconds ago."""
        if time.monotonic() - self._reported_s >= _REPORTED_S:
            self._reported_s = time.monotonic()
            print(f"{totals.copied} runs copied, {totals.unchanged} unchanged …", file=sys.stderr, flush=True)
