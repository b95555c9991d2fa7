"""A copy of a store, while a server may be writing to it."""

from __future__ import annotations

import os
import sqlite3

from runvitals.store import private_files
from runvitals.store.samples.contract import StoreError
from runvitals.store.samples.sqlite_chunks import database, log, month_files
from runvitals.store.samples.sqlite_chunks.database import Format
from runvitals.store.samples.sqlite_chunks.month_files import Months


def backup(folder: str, into: str) -> int:
    """Copy a store into a folder that is empty or not there; how many files it has.

    Every sample that was acknowledged before this began is in the copy. The log is copied first: a sample
    moves from it into a month's file, so it is seen twice at worst, which opening the copy puts right.

    Raises:
        StoreError: there is no store, or the folder cannot be written to, or holds something.
    """
    path = log.existing(folder)
    try:
        os.makedirs(into, mode=0o700, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{into} cannot be made: {error.strerror}") from error
    if os.listdir(into):
        raise StoreError(f"{into} is not empty: a backup goes into a folder of its own")
    there = Months(folder)
    _copy(path, os.path.join(into, log.NAME), log.FORMAT)
    copied = 1
    for month in there.there():
        path = there.path(month)
        if os.path.exists(path):  # and not dropped meanwhile
            _copy(path, os.path.join(into, os.path.basename(path)), month_files.FORMAT)
            copied += 1
    return copied


def _copy(path: str, into: str, form: Format) -> None:
    try:
        private_files.make(into, exclusive=True)
        if database.is_frozen(path):
            database.copy_frozen(path, into)
            return
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(f"{into} cannot be made: {error.strerror}") from error
    source = database.open_for_reading(path, form)
    try:
        with database.failing(into):
            target = sqlite3.connect(into)
            try:
                source.backup(target)
            finally:
                target.close()
    finally:
        source.close()
