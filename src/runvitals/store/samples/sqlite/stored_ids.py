"""The ids of the runs and metrics that a store has samples of. Another process may have the store open."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass, field

from runvitals.store.samples.interface import StoreError
from runvitals.store.samples.sqlite import database, log, month_files, store_id
from runvitals.store.samples.sqlite.column_sets import read_columns
from runvitals.store.samples.sqlite.log import Pairing
from runvitals.store.samples.sqlite.month_files import MonthFiles


@dataclass(slots=True)
class StoredIds:
    """The ids of the metadata store that a store holds.

    Args:
        pairing: the pairing with a metadata store; None if there is none yet.
        is_new: nothing was ever stored.
        lanes: ids of lanes with samples (`run` in the sample store).
        metrics: ids of metrics that have, or had, samples.
        highest: the highest id of a lane or writer.
    """

    pairing: Pairing | None = None
    is_new: bool = True
    lanes: set[int] = field(default_factory=set)
    metrics: set[int] = field(default_factory=set)
    highest: int = 0


def read(folder: str) -> StoredIds:
    """Read the ids from the log and the month files.

    Raises:
        StoreError: there is no store in the folder, or its log could not be read.
    """
    ids = StoredIds()
    path = log.existing_path(folder)
    with closing(database.open_for_reading(path, log.FORMAT)) as connection, database.store_errors(path):
        _add_log(ids, connection)
    months = MonthFiles(folder)
    ids.is_new = ids.is_new and not months.existing() and not months.set_aside_files()
    for month in months.existing():
        path = months.path(month)
        try:
            with closing(database.open_for_reading(path, month_files.FORMAT)) as connection:
                if not store_id.is_another(store_id.read(connection), ids.pairing and ids.pairing.id):
                    _add_month(ids, connection)
        except (StoreError, sqlite3.Error):  # reported by `check`
            continue
    ids.highest = max([ids.highest, *ids.lanes])
    return ids


def _add_log(ids: StoredIds, connection: sqlite3.Connection) -> None:
    ids.pairing = log.read_pairing(connection)
    columns = read_columns(connection)
    ids.metrics.update(metric for metrics in columns.values() for metric in metrics)
    highest = connection.execute("SELECT max(run), max(writer) FROM mark").fetchone()
    ids.highest = max(number or 0 for number in highest)
    sealed = dict(connection.execute("SELECT run, seq FROM sealed"))
    deleted = dict(connection.execute("SELECT run, seq FROM deleted"))
    for seq, packed in connection.execute("SELECT seq, CAST(batches AS BLOB) FROM log"):
        ids.is_new = False
        try:
            batches = log.unpack(packed, columns)
        except ValueError:
            continue
        ids.lanes.update(
            batch.run
            for batch in batches
            if len(batch.t) and seq > max(sealed.get(batch.run, 0), deleted.get(batch.run, 0))
        )


def _add_month(ids: StoredIds, connection: sqlite3.Connection) -> None:
    ids.lanes.update(run for (run,) in connection.execute("SELECT run FROM run"))
    ids.metrics.update(metric for metrics in read_columns(connection).values() for metric in metrics)


def pairing_of(folder: str) -> Pairing | None:
    """Return the pairing of a store with a metadata store, None if there is none yet; or raise StoreError."""
    path = log.existing_path(folder)
    with closing(database.open_for_reading(path, log.FORMAT)) as connection, database.store_errors(path):
        return log.read_pairing(connection)
