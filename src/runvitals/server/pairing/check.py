"""Checks a metadata store, and whether it matches the sample store. Changes nothing."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing

from runvitals.server.buckets.storage.buckets import BucketRow, BucketTable
from runvitals.server.buckets.team_buckets import TeamBuckets
from runvitals.server.database.database import ReadOnlyDatabase, sqlite_path
from runvitals.server.database.issued_ids import HighestIds, IssuedIds
from runvitals.server.database.migration import is_current, is_empty
from runvitals.server.database.secret_box import SecretBox
from runvitals.server.files.storage.stored_files import StoredFileTable
from runvitals.server.pairing.pairing import REMEDY, PairingState, lag, metadata_store_state, mismatch
from runvitals.store.errors import MetadataStoreError, QueryFailed
from runvitals.store.files.buckets import open_store
from runvitals.store.files.folder_store import FolderFileStore
from runvitals.store.samples.interface import StoreError
from runvitals.store.samples.sqlite import stored_ids
from runvitals.store.samples.sqlite.check import Problem, check_pages
from runvitals.store.samples.sqlite.database import open_read_only
from runvitals.store.samples.sqlite.stored_ids import StoredIds

_MAX_LISTED = 10
_PIECE_BYTES = 1 << 20


def check_metadata_store(folder: str, address: str) -> Iterator[Problem]:
    """Yield all problems of the metadata store of a sample store. A server may be using both.

    Args:
        folder: of the sample store.
        address: of the metadata store.

    Raises:
        StoreError: there is no sample store in the folder, or it could not be read.
        ValueError: invalid address.
    """
    # Sample store first: what is added meanwhile is in the metadata store by the time it is read.
    yield from check_ids(folder, stored_ids.read(folder), address)


def check_ids(name: str, stored: StoredIds, address: str) -> Iterator[Problem]:
    """Yield all problems of a metadata store. Servers may be using it.

    Args:
        name: of the sample store.
        stored: the ids in it, read before this is called.
        address: of the metadata store.

    Raises:
        ValueError: invalid address.
    """
    path = sqlite_path(address)
    if path is not None:
        if not os.path.exists(path):
            if stored.pairing is not None or stored.lanes:
                yield Problem(path, "is missing: restore it from a backup, or run `runvitals store repair`")
            return
        damaged = list(damage(path))
        yield from damaged
        if damaged:
            return
    try:
        database = ReadOnlyDatabase(address)
    except MetadataStoreError as error:
        yield Problem(address, str(error))
        return
    with closing(database):
        try:
            yield from _check_match(name, stored, database)
        except QueryFailed as error:
            yield Problem(database.name, f"could not be read: {error}")


def check_contents(folder: str, address: str) -> Iterator[Problem]:
    """Read the contents of files in a folder, and yield those that are missing or damaged.

    A server may be using it.

    Args:
        folder: of contents, which does not exist if they are in a bucket.
        address: of the metadata store.
    """
    path = sqlite_path(address)
    if not os.path.isdir(folder) or (path is not None and not os.path.exists(path)):
        return
    with closing(ReadOnlyDatabase(address)) as database:
        if not is_current(database):
            return
        files, contents = StoredFileTable(database), FolderFileStore(folder)
        for sizes in files.sizes():
            damaged = {sha256: reason for sha256 in sizes if (reason := _damage_of(contents, sha256))}
            for sha256 in sorted(files.known(damaged)):  # without those that were removed meanwhile
                yield Problem(folder, f"the content {sha256} of {sizes[sha256]:,} bytes {damaged[sha256]}")


def check_team_buckets(address: str, box: SecretBox) -> Iterator[Problem]:
    """List the buckets of teams, and yield contents that are missing there or have another size.

    Args:
        address: of the metadata store.
        box: opens the credentials of buckets.
    """
    path = sqlite_path(address)
    if path is not None and not os.path.exists(path):
        return
    with closing(ReadOnlyDatabase(address)) as database:
        if not is_current(database):
            return
        files, table = StoredFileTable(database), BucketTable(database)
        buckets = TeamBuckets(table, box, lambda: 0, time.monotonic)
        for team_id in files.places()[1:]:
            row = table.of_team(team_id)
            if row is not None:
                yield from _check_team_bucket(files, team_id, row, buckets)


def _check_team_bucket(
    files: StoredFileTable, team_id: int, row: BucketRow, buckets: TeamBuckets
) -> Iterator[Problem]:
    location = row.location.below(str(team_id))
    try:
        store = open_store(buckets.location(row).below(str(team_id)))
        stored_sizes = {content.sha256: content.bytes for content in store.contents()}
    except OSError as error:
        yield Problem(str(location), f"could not be read: {error.strerror or error}")
        return
    for sizes in files.sizes(team_id):
        wrong = {sha256 for sha256, size in sizes.items() if stored_sizes.get(sha256) != size}
        for sha256 in sorted(files.known(wrong, team_id)):  # without those that were removed meanwhile
            size = stored_sizes.get(sha256)
            reason = "is missing" if size is None else f"is damaged: what is there has {size:,} bytes"
            yield Problem(str(location), f"the content {sha256} of {sizes[sha256]:,} bytes {reason}")


def _damage_of(contents: FolderFileStore, sha256: str) -> str | None:
    """Return how a content is damaged; None if it is intact."""
    digest, size = hashlib.sha256(), 0
    try:
        with contents.open(sha256) as file:
            while piece := file.read(_PIECE_BYTES):
                digest.update(piece)
                size += len(piece)
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"could not be read: {error.strerror}"
    return None if digest.hexdigest() == sha256 else f"is damaged: what is there has {size:,} bytes"


def require_match(name: str, stored: StoredIds, address: str) -> None:
    """Check that a metadata store belongs to a sample store. Servers may be using both.

    A metadata store of an older version is accepted: it does not contain the pairing.

    Args:
        name: of the sample store.
        stored: the ids in it, read before this is called.

    Raises:
        StoreError: it is empty, belongs to another sample store, or is older than this one.
        MetadataStoreError: it could not be opened.
    """
    with closing(ReadOnlyDatabase(address)) as database:
        try:
            if is_empty(database):
                raise StoreError(f"{database.name} is not a metadata store: it is empty")
            reason = _mismatch(name, stored, database) if is_current(database) else None
        except QueryFailed as error:
            raise MetadataStoreError(f"{database.name} could not be read: {error}") from error
    if reason is not None:
        raise StoreError(f"{reason}: {REMEDY}")


def damage(path: str) -> Iterator[Problem]:
    """Yield the damage of a metadata store's SQLite file."""
    try:
        with closing(open_read_only(path)) as connection:
            yield from check_pages(connection, path)
            for table, _, other, _ in connection.execute("PRAGMA foreign_key_check"):
                yield Problem(path, f"a row of table {table} refers to a missing row of table {other}")
    except (OSError, sqlite3.Error) as error:
        yield Problem(path, f"could not be read: {error}")


def _check_match(name: str, stored: StoredIds, database: ReadOnlyDatabase) -> Iterator[Problem]:
    if is_empty(database):
        yield Problem(database.name, "is not a metadata store: it is empty")
        return
    if not is_current(database):
        yield Problem(
            database.name,
            "was written by another version of runvitals: start a server once to upgrade it",
        )
        return
    store, issued = _sample_store_state(name, stored), IssuedIds(database)
    metadata_store = metadata_store_state(issued)
    reason = mismatch(store, metadata_store)
    if reason is not None:
        yield Problem(database.name, f"{reason}: see `runvitals store repair`")
    else:
        behind = lag(store, metadata_store)
        if behind is not None:
            yield Problem(database.name, behind)
    yield from _unknown_ids(issued, stored)


def _mismatch(name: str, stored: StoredIds, database: ReadOnlyDatabase) -> str | None:
    return mismatch(_sample_store_state(name, stored), metadata_store_state(IssuedIds(database)))


def _sample_store_state(name: str, stored: StoredIds) -> PairingState:
    return PairingState(
        name,
        stored.pairing and (stored.pairing.id, stored.pairing.starts),
        stored.is_new,
        HighestIds(stored.highest, max(stored.metrics, default=0)),
    )


def _unknown_ids(issued: IssuedIds, stored: StoredIds) -> Iterator[Problem]:
    """Ids of samples that the metadata store does not contain."""
    for kind, ids in (
        ("run", issued.unknown_lanes(stored.lanes)),
        ("metric", issued.unknown_metrics(stored.metrics)),
    ):
        for number in sorted(ids)[:_MAX_LISTED]:
            yield Problem(issued.name, f"unknown {kind}: the sample store has samples of {kind} id {number}")
        if len(ids) > _MAX_LISTED:
            yield Problem(issued.name, f"{len(ids) - _MAX_LISTED} more unknown {kind}s")
