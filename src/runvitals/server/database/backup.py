"""Copies and replaces the file of a metadata store in SQLite."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from runvitals.journal.paths import sync_folder
from runvitals.store import private_files
from runvitals.store.errors import MetadataStoreError
from runvitals.store.samples.sqlite.database import copy_immutable, is_on_read_only_disk


def copy_sqlite(path: str, into: str) -> None:
    """Copy a consistent snapshot of a metadata store's file.

    Of a server's folder, copy the samples first, so that this copy has every id they use.

    Raises:
        MetadataStoreError: it could not be read, or the copy could not be written.
    """
    try:
        private_files.create(into, exclusive=True)
        if is_on_read_only_disk(path):
            copy_immutable(path, into)
            return
        source = sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=rw", uri=True)
        try:
            target = sqlite3.connect(into)
            try:
                source.backup(target)
            finally:
                target.close()
        finally:
            source.close()
    except (sqlite3.Error, OSError) as error:
        raise MetadataStoreError(f"could not copy {path} to {into}: {error}") from error


@contextmanager
def named_when_complete(path: str) -> Iterator[str]:
    """Yield the name of a new SQLite file, which gets its own once the block ends without an error. Durable.

    What a process that was killed has left of the file is removed.
    """
    unfinished = f"{path}.unfinished"
    _remove(unfinished)
    try:
        yield unfinished
        os.replace(unfinished, path)
    except BaseException:
        _remove(unfinished)
        raise
    sync_folder(os.path.dirname(os.path.abspath(path)))


def _remove(path: str) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        with suppress(FileNotFoundError):
            os.unlink(path + suffix)
