"""Copies a store, while a server may be writing to it."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing

from runvitals.base.private_folders import make_private
from runvitals.store import private_files, sqlite_salvage
from runvitals.store.samples.cold import noted_objects, rows
from runvitals.store.samples.interface import StoreError
from runvitals.store.samples.sqlite import database, log, month_files
from runvitals.store.samples.sqlite.database import Format
from runvitals.store.samples.sqlite.month_files import MonthFiles


def backup(folder: str, into: str) -> int:
    """Copy a store into an empty or new folder and return the number of files, or raise StoreError."""
    log.existing_path(folder)
    make_empty(into)
    return copy_files(folder, into)


def make_empty(folder: str) -> None:
    """Create a folder for a copy; raise StoreError if it is not writable or not empty."""
    _make(folder)
    if os.listdir(folder):
        raise StoreError(f"{folder} is not empty: choose an empty or new folder for the backup")


def has_store(folder: str) -> bool:
    """Return whether a folder has files of a store."""
    return os.path.exists(os.path.join(folder, log.NAME)) or bool(MonthFiles(folder).existing())


def copy_files(folder: str, into: str) -> int:
    """Copy the files of a store into a folder that has none. Returns their number.

    The copy contains every sample that was acknowledged before the call. The log is copied first: samples
    move from it to month files, so some may be copied twice; they are merged when the copy is opened.

    Raises:
        StoreError: there is no store, or the target folder is not writable.
    """
    path = log.existing_path(folder)
    _make(into)
    months = MonthFiles(folder)
    _copy(path, os.path.join(into, log.NAME), log.FORMAT)
    copied = 1
    for month in months.existing():
        path = months.path(month)
        if os.path.exists(path):  # otherwise it was deleted meanwhile
            _copy(path, os.path.join(into, os.path.basename(path)), month_files.FORMAT)
            copied += 1
    return copied


def cold_of(copy: str) -> tuple[str | None, int]:
    """Return the cold storage with the old samples of a copy, None if there is none, and their size.

    No process may use the copy, which stays as it is.
    """
    months = MonthFiles(copy)
    size = 0
    for month in months.existing():
        with closing(sqlite_salvage.open_damaged(months.path(month))) as connection:
            size += rows.used_bytes(connection)
    with closing(sqlite_salvage.open_damaged(os.path.join(copy, log.NAME))) as connection:
        return noted_objects.read_address(connection), size


def _make(folder: str) -> None:
    try:
        make_private(folder)
    except OSError as error:
        raise StoreError(f"could not create {folder}: {error.strerror}") from error


def _copy(path: str, into: str, file_format: Format) -> None:
    try:
        private_files.create(into, exclusive=True)
        if database.is_on_read_only_disk(path):
            database.copy_immutable(path, into)
            return
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(f"could not create {into}: {error.strerror}") from error
    source = database.open_for_reading(path, file_format)
    try:
        with database.store_errors(into):
            target = sqlite3.connect(into)
            try:
                source.backup(target)
            finally:
                target.close()
    finally:
        source.close()
