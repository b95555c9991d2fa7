"""Repairing the files of samples: the log, and months that were damaged."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Collection, Iterator
from contextlib import closing

import numpy as np

from runvitals.store import sqlite_salvage
from runvitals.store.samples.codec import Corrupt
from runvitals.store.samples.contract import END_OF_TIME_MS
from runvitals.store.samples.sqlite_chunks import check, database, log, month_files
from runvitals.store.samples.sqlite_chunks import store_id as owner
from runvitals.store.samples.sqlite_chunks.blocks import Block, on_disk
from runvitals.store.samples.sqlite_chunks.chunks import Chunk, Decoder
from runvitals.store.samples.sqlite_chunks.column_sets import add_columns, read_columns, unpack_columns
from runvitals.store.samples.sqlite_chunks.database import ASIDE, DamagedFile
from runvitals.store.samples.sqlite_chunks.month_files import Months
from runvitals.store.samples.sqlite_chunks.packs import Pack
from runvitals.store.samples.sqlite_chunks.store import SqliteChunks

_ROWS_LEFT_OUT = 1000
"""Numbers of the log's rows that are not used again: lost rows may have had them."""
_READ = ".salvaged-"
"""In the name of a damaged file in place of `ASIDE`, once it was read."""
_ANOTHERS = ".of-another-store-"
"""The same of a file that is another store's."""

Say = Callable[[str], None]


# The log


def repair_log(folder: str, say: Say) -> None:
    """Make the log anew where it is missing or damaged, with what can be read of it."""
    path = os.path.join(folder, log.NAME)
    if not os.path.exists(path):
        _new_log(folder, path)
        say(f"{path} was missing: there is a new one; samples that were in it alone are lost")
        return
    reason = _damage(path, log.FORMAT)
    if reason is None:
        return
    aside = database.set_aside(path)
    rows = _new_log(folder, path, aside)
    say(f"{path}: {reason}; it is now {aside}, and {rows:,} rows of it were read")


def _damage(path: str, form: database.Format) -> str | None:
    try:
        with closing(database.open_for_reading(path, form)) as connection, database.failing(path):
            return next((problem.text for problem in check.pages(connection, path)), None)
    except DamagedFile as error:
        return str(error).removeprefix(f"{path}: ")


def _new_log(folder: str, path: str, damaged: str | None = None) -> int:
    """A log with what can be read of a damaged one; how many rows that was."""
    count = 0
    with (
        closing(database.open_for_writing(path, log.FORMAT)) as connection,
        database.failing(path),
        database.transaction(connection),
    ):
        if damaged is not None:
            count = _copy_log(damaged, connection)
        highest = _highest_metric(folder)
        if highest:
            add_columns(connection, (highest,))
    return count


def _copy_log(damaged: str, connection: sqlite3.Connection) -> int:
    count = 0
    with closing(sqlite_salvage.opened(damaged)) as source:
        for table in ("columns", "log", "mark", "sealed", "deleted", "damaged", "pairing"):
            for row in sqlite_salvage.rows(source, table):
                names, places = ", ".join(row), ", ".join("?" * len(row))
                connection.execute(
                    f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({places})", tuple(row.values())
                )
                count += 1
    used = [
        connection.execute(f"SELECT coalesce(max(seq), 0) FROM {table}").fetchone()[0]
        for table in ("log", "sealed", "deleted")
    ]
    connection.execute("INSERT INTO log VALUES (?, ?)", (max(used) + _ROWS_LEFT_OUT, log.EMPTY))
    return count


def _highest_metric(folder: str) -> int:
    """The highest number of a metric in the months' files."""
    there = Months(folder)
    highest = 0
    for path in [*map(there.path, there.there()), *(path for _, path in there.aside())]:
        try:
            with closing(sqlite_salvage.opened(path)) as connection:
                (in_chunks,) = connection.execute("SELECT max(metric) FROM chunk").fetchone()
                in_packs = [max(some) for some in read_columns(connection).values() if some]
        except sqlite3.DatabaseError:
            continue
        highest = max([highest, in_chunks or 0, *in_packs])
    return highest


# Months


def set_damaged_months_aside(folder: str, say: Say) -> None:
    """Set the files of months aside whose pages are damaged."""
    there = Months(folder)
    for month in there.there():
        path = there.path(month)
        reason = _damage(path, month_files.FORMAT) if os.path.isfile(path) else "is no file"
        if reason is not None:
            say(f"{path}: {reason}; it is now {database.set_aside(path)}")


def bring_back(store: SqliteChunks, wanted: Callable[[int], bool]) -> Iterator[str]:
    """Store what can be read of the months' files that were set aside; a line about each.

    Args:
        wanted: whether samples under a number are: those of runs that were deleted are not.
    """
    for path in store.set_aside():
        if not os.path.isfile(path):
            yield f"{path}: nothing can be read of it"
            continue
        samples = 0
        with closing(sqlite_salvage.opened(path)) as connection:
            if _is_anothers(connection, store.store_id):
                into = store.forget_aside(path, path.replace(ASIDE, _ANOTHERS))
                yield f"{path} is another store's: nothing was read of it; it is now {into}"
                continue
            for run, blocks in _blocks(connection):
                if wanted(run):
                    store.bring_back(run, blocks)
                    samples += sum(block.values.size for block in blocks)
        into = store.forget_aside(path, path.replace(ASIDE, _READ))
        yield f"{path}: {samples:,} samples were read; it is now {into}, and can be deleted"


def _is_anothers(connection: sqlite3.Connection, store_id: str | None) -> bool:
    try:
        return owner.is_another(owner.of(connection), store_id)
    except sqlite3.DatabaseError:  # it is damaged
        return False


def _blocks(connection: sqlite3.Connection) -> Iterator[tuple[int, list[Block]]]:
    """The samples of each run that can be read, chunk by chunk and pack by pack."""
    columns = {
        row["id"]: unpack_columns(row["metrics"]) for row in sqlite_salvage.rows(connection, "columns")
    }
    of_run: dict[int, list[Chunk | Pack]] = {}
    for row in sqlite_salvage.rows(connection, "chunk"):
        of_run.setdefault(row["run"], []).append(Chunk(*(row[name] for name in Chunk._fields)))
    for row in sqlite_salvage.rows(connection, "pack"):
        values = {**row, "metrics": columns.get(row.pop("columns"), ())}
        of_run.setdefault(row["run"], []).append(Pack(*(values[name] for name in Pack._fields)))
    decoder = Decoder(connection)
    for run, parts in of_run.items():
        blocks = [block for block in (_block(decoder, part) for part in parts) if block is not None]
        if blocks:
            yield run, blocks


def _block(decoder: Decoder, part: Chunk | Pack) -> Block | None:
    try:
        if isinstance(part, Pack):
            return part.block() if part.metrics else None
        t, values = decoder.times(part), decoder.values(part)
    except (Corrupt, sqlite3.DatabaseError):
        return None
    return on_disk((part.metric,), t, values.reshape(-1, 1))


# What is there


def extents(store: SqliteChunks, without: Collection[int]) -> dict[int, tuple[set[int], int, int]]:
    """The metrics of runs, and the times of their first and last samples."""
    found = {}
    for run in store.runs():
        if run in without:
            continue
        series = store.read([run], None, 0, END_OF_TIME_MS - 1).series
        if series:
            t = [(int(one.t[0]), int(one.t[-1])) for one in series if len(one.t)]
            metrics = {one.metric for one in series}
            found[run] = metrics, int(np.min(t)), int(np.max(t))
    return found
