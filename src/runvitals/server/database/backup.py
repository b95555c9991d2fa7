"""Copies a SQLite metadata store while servers may be writing to it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from runvitals.store import private_files
from runvitals.store.errors import MetadataStoreError
from runvitals.store.samples.sqlite.database import copy_immutable, is_on_read_only_disk


def backup(path: str, into: str) -> None:
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
