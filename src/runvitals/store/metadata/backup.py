"""A copy of a SQLite catalogue, while servers may be writing to it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from runvitals.store import private_files
from runvitals.store.metadata.database import MetadataStoreError
from runvitals.store.samples.sqlite_chunks.database import copy_frozen, is_frozen


def backup(path: str, into: str) -> None:
    """Copy a catalogue's file as it is at one moment.

    Of a server's folder, copy the samples first: then the copy of the catalogue knows every number that they
    have.

    Raises:
        CatalogueError: it cannot be read, or the copy cannot be written.
    """
    try:
        private_files.make(into, exclusive=True)
        if is_frozen(path):
            copy_frozen(path, into)
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
        raise MetadataStoreError(f"{path} cannot be copied to {into}: {error}") from error
