"""Statistics of a store's files. Another process may have the store open."""

from __future__ import annotations

from dataclasses import dataclass

from runvitals.store.samples.cold import rows
from runvitals.store.samples.sqlite import database, log, month_files
from runvitals.store.samples.sqlite.month_files import MonthFiles


@dataclass(frozen=True, slots=True)
class StoreFile:
    """One file.

    Args:
        size_bytes: on disk, including its write-ahead log.
        runs, samples, chunks, packs: how many it contains; None for the log.
        damaged: number of damaged parts that were set aside.
        cold_bytes: size of its values in cold storage.
    """

    path: str
    size_bytes: int
    runs: int | None
    samples: int | None
    chunks: int | None
    packs: int | None
    damaged: int
    cold_bytes: int = 0


def inventory(folder: str) -> list[StoreFile]:
    """Return the log, then the months in order.

    Raises:
        StoreError: there is no store in the folder, it is of another version, or could not be read.
    """
    files = [_log_file(log.existing_path(folder))]
    months = MonthFiles(folder)
    return files + [_month_file(months.path(month)) for month in months.existing()]


def _log_file(path: str) -> StoreFile:
    connection = database.open_for_reading(path, log.FORMAT)
    try:
        with database.store_errors(path):
            (damaged,) = connection.execute("SELECT count(*) FROM damaged").fetchone()
    finally:
        connection.close()
    return StoreFile(path, database.size(path), None, None, None, None, damaged)


def _month_file(path: str) -> StoreFile:
    connection = database.open_for_reading(path, month_files.FORMAT)
    try:
        with database.store_errors(path):
            counts = [
                int(connection.execute(f"SELECT {expression}").fetchone()[0])
                for expression in (
                    "count(*) FROM run",
                    "coalesce(sum(samples), 0) FROM run",
                    "count(*) FROM chunk",
                    "count(*) FROM pack",
                    "count(*) FROM damaged",
                )
            ]
            counts.append(rows.used_bytes(connection))
    finally:
        connection.close()
    return StoreFile(path, database.size(path), *counts)
