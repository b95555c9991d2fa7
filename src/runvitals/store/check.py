"""Checking a catalogue, and whether it fits to the store of samples. Nothing is changed."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing

from sqlalchemy import Connection, inspect, select

from runvitals.store.errors import MetadataStoreError, QueryFailed
from runvitals.store.metadata.database import ReadOnlyDatabase, among, sqlite_path
from runvitals.store.metadata.issued_ids import HighestIds, IssuedIds
from runvitals.store.metadata.migration import is_current
from runvitals.store.metadata.tables import metric, writer
from runvitals.store.pairing import WAY_OUT, Side, mismatch
from runvitals.store.samples.contract import StoreError
from runvitals.store.samples.sqlite_chunks import stored_ids
from runvitals.store.samples.sqlite_chunks.check import Problem, pages
from runvitals.store.samples.sqlite_chunks.database import open_as_it_is

_MOST_NAMED = 10


def check_catalogue(folder: str, address: str) -> Iterator[Problem]:
    """Everything that is wrong with a catalogue as that of a store; a server may be using both.

    Raises:
        StoreError: there is no store in the folder, or it cannot be read.
        ValueError: an address of another kind.
    """
    held = stored_ids.of(folder)  # before the catalogue: what comes meanwhile is in it by then
    path = sqlite_path(address)
    if path is not None:
        if not os.path.exists(path):
            if held.pairing is not None or held.lanes:
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
            yield from _fitting(folder, held, database)
        except QueryFailed as error:
            yield Problem(database.name, f"cannot be read: {error}")


def require_match(folder: str, address: str) -> None:
    """Check that a catalogue belongs to the store in a folder; a server may be using both.

    A catalogue that an older version wrote is accepted: it cannot say whether it belongs here.

    Raises:
        StoreError: it belongs to another store, or is older than this one.
        MetadataStoreError: it cannot be opened.
    """
    held = stored_ids.of(folder)
    with closing(ReadOnlyDatabase(address)) as database:
        try:
            reason = _mismatch(folder, held, database) if is_current(database) else None
        except QueryFailed as error:
            raise MetadataStoreError(f"{database.name} cannot be read: {error}") from error
    if reason is not None:
        raise StoreError(f"{reason}: {WAY_OUT}")


def damage(path: str) -> Iterator[Problem]:
    """What is wrong with the file of a catalogue, whatever store it belongs to."""
    try:
        with closing(open_as_it_is(path)) as connection:
            yield from pages(connection, path)
            for table, _, other, _ in connection.execute("PRAGMA foreign_key_check"):
                yield Problem(
                    path, f"a row of table {table} refers to one of table {other} that is not there"
                )
    except (OSError, sqlite3.Error) as error:
        yield Problem(path, f"cannot be read: {error}")


def _fitting(folder: str, held: stored_ids.Contents, database: ReadOnlyDatabase) -> Iterator[Problem]:
    with database.read() as connection:
        there = set(inspect(connection).get_table_names())
    if not is_current(database):
        if there:
            yield Problem(
                database.name,
                "was written by another version of runvitals: start a server once to upgrade it",
            )
        else:
            yield Problem(database.name, "is not a metadata store: it is empty")
        return
    reason = _mismatch(folder, held, database)
    if reason is not None:
        yield Problem(database.name, f"{reason}: see `runvitals store repair`")
    with database.read() as connection:
        yield from _unknown(connection, database.name, held)


def _mismatch(folder: str, held: stored_ids.Contents, database: ReadOnlyDatabase) -> str | None:
    numbers = IssuedIds(database)
    store = Side(
        folder,
        held.pairing and (held.pairing.id, held.pairing.starts),
        held.is_new,
        HighestIds(held.highest, max(held.metrics, default=0)),
    )
    return mismatch(store, Side(numbers.name, numbers.pairing(), not numbers.has_writers(), numbers.given()))


def _unknown(connection: Connection, name: str, held: stored_ids.Contents) -> Iterator[Problem]:
    """Numbers of samples that the catalogue says nothing of."""
    for what, column, asked in (
        ("samples of a run, stored as number", writer.c.lane_id, held.lanes),
        ("samples of a metric, stored as number", metric.c.id, held.metrics),
    ):
        known = set(connection.execute(select(column).where(among(connection, column, asked))).scalars())
        unknown = sorted(asked - known)
        for number in unknown[:_MOST_NAMED]:
            yield Problem(name, f"{what} {number}, are unknown")
        if len(unknown) > _MOST_NAMED:
            yield Problem(name, f"{what} …: {len(unknown) - _MOST_NAMED} more are unknown")
