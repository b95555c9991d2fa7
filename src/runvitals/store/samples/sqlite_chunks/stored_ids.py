"""Which numbers a store has samples under, read from its files while another process may have them open."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass, field

from runvitals.store.samples.contract import StoreError
from runvitals.store.samples.sqlite_chunks import database, log, month_files, store_id
from runvitals.store.samples.sqlite_chunks.column_sets import read_columns
from runvitals.store.samples.sqlite_chunks.log import Pairing
from runvitals.store.samples.sqlite_chunks.month_files import Months


@dataclass(slots=True)
class Contents:
    """
    Args:
        pairing: what the store says of its catalogue.
        is_new: nothing was ever stored.
        lanes: the numbers of runs, as the catalogue's writers have them, that there are samples of.
        metrics: of metrics that there are, or were, samples of.
        highest: the highest number of a run or a writer.
    """

    pairing: Pairing | None = None
    is_new: bool = True
    lanes: set[int] = field(default_factory=set)
    metrics: set[int] = field(default_factory=set)
    highest: int = 0


def of(folder: str) -> Contents:
    """
    Raises:
        StoreError: there is no store in the folder, or its log cannot be read.
    """
    found = Contents()
    path = log.existing(folder)
    with closing(database.open_for_reading(path, log.FORMAT)) as connection, database.failing(path):
        _add_log(found, connection)
    there = Months(folder)
    found.is_new = found.is_new and not there.there() and not there.aside()
    for month in there.there():
        path = there.path(month)
        try:
            with closing(database.open_for_reading(path, month_files.FORMAT)) as connection:
                if not store_id.is_another(store_id.of(connection), found.pairing and found.pairing.id):
                    _add_month(found, connection)
        except (StoreError, sqlite3.Error):  # `check` tells of it
            continue
    found.highest = max([found.highest, *found.lanes])
    return found


def _add_log(found: Contents, connection: sqlite3.Connection) -> None:
    found.pairing = log.read_pairing(connection)
    columns = read_columns(connection)
    found.metrics.update(metric for some in columns.values() for metric in some)
    marks = connection.execute("SELECT max(run), max(writer) FROM mark").fetchone()
    found.highest = max(number or 0 for number in marks)
    sealed = dict(connection.execute("SELECT run, seq FROM sealed"))
    deleted = dict(connection.execute("SELECT run, seq FROM deleted"))
    for seq, packed in connection.execute("SELECT seq, batches FROM log"):
        found.is_new = False
        try:
            batches = log.unpack(packed, columns)
        except ValueError:
            continue
        found.lanes.update(
            one.run
            for one in batches
            if len(one.t) and seq > max(sealed.get(one.run, 0), deleted.get(one.run, 0))
        )


def _add_month(found: Contents, connection: sqlite3.Connection) -> None:
    found.lanes.update(run for (run,) in connection.execute("SELECT run FROM run"))
    found.metrics.update(metric for some in read_columns(connection).values() for metric in some)


def pairing_of(folder: str) -> Pairing | None:
    """What a store says of its catalogue.

    Raises:
        StoreError: there is no store in the folder, or its log cannot be read.
    """
    path = log.existing(folder)
    with closing(database.open_for_reading(path, log.FORMAT)) as connection, database.failing(path):
        return log.read_pairing(connection)
