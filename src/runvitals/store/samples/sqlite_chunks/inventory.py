"""What lies in a store's files, read from them while another process may have them open."""

from __future__ import annotations

from dataclasses import dataclass

from runvitals.store.samples.sqlite_chunks import database, log, month_files
from runvitals.store.samples.sqlite_chunks.month_files import Months


@dataclass(frozen=True, slots=True)
class File:
    """One file.

    Args:
        size_bytes: on disk, with its write-ahead log.
        runs, samples, chunks, packs: what it holds; None of the log.
        damaged: stretches that were set aside.
    """

    path: str
    size_bytes: int
    runs: int | None
    samples: int | None
    chunks: int | None
    packs: int | None
    damaged: int


def inventory(folder: str) -> list[File]:
    """The log, then the months in order.

    Raises:
        StoreError: there is no store in the folder, or it is of another version, or it cannot be read.
    """
    files = [_of_log(log.existing(folder))]
    there = Months(folder)
    return files + [_of_month(there.path(month)) for month in there.there()]


def _of_log(path: str) -> File:
    connection = database.open_for_reading(path, log.FORMAT)
    try:
        with database.failing(path):
            (damaged,) = connection.execute("SELECT count(*) FROM damaged").fetchone()
    finally:
        connection.close()
    return File(path, database.size(path), None, None, None, None, damaged)


def _of_month(path: str) -> File:
    connection = database.open_for_reading(path, month_files.FORMAT)
    try:
        with database.failing(path):
            counts = [
                int(connection.execute(f"SELECT {what}").fetchone()[0])
                for what in (
                    "count(*) FROM run",
                    "coalesce(sum(samples), 0) FROM run",
                    "count(*) FROM chunk",
                    "count(*) FROM pack",
                    "count(*) FROM damaged",
                )
            ]
    finally:
        connection.close()
    return File(path, database.size(path), *counts)
