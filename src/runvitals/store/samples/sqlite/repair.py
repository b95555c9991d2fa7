"""Repairs the files of a sample store: the log, and damaged month files."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing

from runvitals.store import private_files, sqlite_salvage
from runvitals.store.samples.codec import CorruptData
from runvitals.store.samples.cold import noted_objects, objects
from runvitals.store.samples.cold.reading import ColdLost, ColdReader
from runvitals.store.samples.sqlite import check, database, log, month_files
from runvitals.store.samples.sqlite import store_id as owner
from runvitals.store.samples.sqlite.blocks import Block, on_disk
from runvitals.store.samples.sqlite.chunks import Chunk, ChunkDecoder
from runvitals.store.samples.sqlite.column_sets import add_columns, read_columns, unpack_columns
from runvitals.store.samples.sqlite.database import SET_ASIDE_SUFFIX, DamagedFile
from runvitals.store.samples.sqlite.month_files import MonthFiles
from runvitals.store.samples.sqlite.packs import Pack
from runvitals.store.samples.sqlite.store import SqliteChunks

_SKIPPED_ROWS = 1000
"""Row numbers of the log that are skipped, because lost rows may have had them."""
_RECOVERED_SUFFIX = ".salvaged-"
"""Replaces `SET_ASIDE_SUFFIX` in the name of a damaged file whose samples were recovered."""
_PARTS_SUFFIX = ".damaged-parts-"
"""In the name of a file with damaged parts of another one."""
_FOREIGN_SUFFIX = ".of-another-store-"
"""Replaces it in the name of a file that belongs to another store."""

Report = Callable[[str], None]


# Log


def repair_log(folder: str, report: Report) -> None:
    """Create a new log if it is missing or damaged, with the readable rows of the old one.

    Damaged rows that are set aside in it get a file of their own.
    """
    path = os.path.join(folder, log.NAME)
    if not os.path.exists(path):
        _new_log(folder, path)
        report(f"{path} was missing and was created anew; samples that were only in it are lost")
        return
    reason = _damage(path, log.FORMAT)
    if reason is not None:
        aside = database.set_aside(path)
        rows = _new_log(folder, path, aside if os.path.isfile(aside) else None)
        report(f"{path}: {reason}; renamed it to {aside}, and recovered {rows:,} rows")
    _move_damaged_rows(path, log.FORMAT, report)


def _move_damaged_rows(path: str, file_format: database.Format, report: Report) -> None:
    """Move damaged parts that a server set aside in a file to another file.

    They are no longer reported then.
    """
    with closing(database.open_for_writing(path, file_format)) as connection, database.store_errors(path):
        (count,) = connection.execute("SELECT count(*) FROM damaged").fetchone()
        if not count:
            return
        into = database.unused_path(f"{path}{_PARTS_SUFFIX}")
        private_files.create(into)
        connection.execute("ATTACH ? AS aside", (into,))
        connection.execute("CREATE TABLE aside.damaged AS SELECT * FROM main.damaged")
        connection.execute("DELETE FROM main.damaged")
    report(f"{path}: {count:,} damaged parts cannot be recovered; moved them to {into}, which can be deleted")


def _damage(path: str, file_format: database.Format) -> str | None:
    try:
        with closing(database.open_for_reading(path, file_format)) as connection, database.store_errors(path):
            return next((problem.text for problem in check.check_pages(connection, path)), None)
    except DamagedFile as error:
        return str(error).removeprefix(f"{path}: ")


def _new_log(folder: str, path: str, damaged: str | None = None) -> int:
    """Create a log with the readable rows of a damaged one. Returns their number."""
    count = 0
    with (
        closing(database.open_for_writing(path, log.FORMAT)) as connection,
        database.store_errors(path),
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
    noted_objects.create_tables(connection)
    with closing(sqlite_salvage.open_damaged(damaged)) as source:
        for table in (
            *("columns", "log", "mark", "sealed", "deleted", "damaged", "pairing"),
            *noted_objects.TABLES,
        ):
            for row in sqlite_salvage.rows(source, table):
                names, parameters = ", ".join(row), ", ".join("?" * len(row))
                connection.execute(
                    f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({parameters})", tuple(row.values())
                )
                count += 1
    last_rows = [
        connection.execute(f"SELECT coalesce(max(seq), 0) FROM {table}").fetchone()[0]
        for table in ("log", "sealed", "deleted")
    ]
    connection.execute("INSERT INTO log VALUES (?, ?)", (max(last_rows) + _SKIPPED_ROWS, log.EMPTY))
    return count


def _highest_metric(folder: str) -> int:
    """Return the highest metric id in the month files."""
    months = MonthFiles(folder)
    highest = 0
    for path in [*map(months.path, months.existing()), *(path for _, path in months.set_aside_files())]:
        if not os.path.isfile(path):
            continue
        try:
            with closing(sqlite_salvage.open_damaged(path)) as connection:
                (in_chunks,) = connection.execute("SELECT max(metric) FROM chunk").fetchone()
                in_packs = [max(metrics) for metrics in read_columns(connection).values() if metrics]
        except sqlite3.DatabaseError:
            continue
        highest = max([highest, in_chunks or 0, *in_packs])
    return highest


# MonthFiles


def set_damaged_months_aside(folder: str, report: Report) -> None:
    """Rename the month files that are damaged."""
    months = MonthFiles(folder)
    for month in months.existing():
        path = months.path(month)
        reason = _damage(path, month_files.FORMAT) if os.path.isfile(path) else "not a file"
        if reason is not None:
            report(f"{path}: {reason}; renamed it to {database.set_aside(path)}")
        else:
            _move_damaged_rows(path, month_files.FORMAT, report)


def restore(store: SqliteChunks, should_restore: Callable[[int], bool]) -> Iterator[str]:
    """Restore the readable samples of the month files that were set aside. Yields a line about each file.

    Args:
        should_restore: whether to restore a run, by its id: deleted runs are not restored.
    """
    for path in store.set_aside():
        if not os.path.isfile(path):
            into = store.rename_set_aside(path, path.replace(SET_ASIDE_SUFFIX, _RECOVERED_SUFFIX))
            yield f"{path}: it is no file, and was renamed to {into}, which can be deleted"
            continue
        samples = lost = 0
        with closing(sqlite_salvage.open_damaged(path)) as connection:
            if _is_foreign(connection, store.store_id):
                into = store.rename_set_aside(path, path.replace(SET_ASIDE_SUFFIX, _FOREIGN_SUFFIX))
                yield f"{path} belongs to another store and was not read; renamed it to {into}"
                continue
            for run, blocks, unreadable in _blocks(connection, store.cold):
                if should_restore(run):
                    if blocks:
                        store.restore(run, blocks)
                    samples += sum(block.values.size for block in blocks)
                    lost += unreadable
            store.note_unneeded([row["sha256"] for row in sqlite_salvage.rows(connection, "object")])
        into = store.rename_set_aside(path, path.replace(SET_ASIDE_SUFFIX, _RECOVERED_SUFFIX))
        yield f"{path}: recovered {samples:,} samples; renamed it to {into}, which can be deleted"
        if lost:
            yield f"{path}: {lost:,} values that it lists could not be read and are lost"


def _is_foreign(connection: sqlite3.Connection, store_id: str | None) -> bool:
    try:
        return owner.is_another(owner.read(connection), store_id)
    except sqlite3.DatabaseError:  # it is damaged
        return False


def restore_from_cold_storage(store: SqliteChunks, should_restore: Callable[[int], bool]) -> Iterator[str]:
    """Restore the samples of deleted month files that are in cold storage. Yields a line if there are any.

    Raises:
        StoreError: cold storage cannot be read at present.
    """
    cold, months = store.cold, store.missing_months()
    if cold is None or not months:
        return
    samples = 0
    restored = []
    for sha256 in sorted(cold.sizes().keys() - store.known_objects()):
        by_run: dict[int, list[Block]] = {}
        try:
            with cold.open(sha256) as file:
                listed = objects.read_list(file)
                if listed["store"] != store.store_id:
                    continue
                for run, block in objects.blocks(file, listed):
                    if should_restore(run) and month_files.month_of(int(block.t[0])) in months:
                        by_run.setdefault(run, []).append(block)
        except ColdLost as error:
            yield f"{error}: if it had samples of deleted files, they are lost"
            continue
        for run, blocks in by_run.items():
            store.restore(run, blocks)
            samples += sum(block.values.size for block in blocks)
        restored.append(sha256)
    store.note_unneeded(restored)
    yield f"recovered {samples:,} samples of deleted files from {cold.settings.address}"


def _blocks(
    connection: sqlite3.Connection, cold: ColdReader | None
) -> Iterator[tuple[int, list[Block], int]]:
    """Yield the readable samples of each run, a block per chunk and pack, and how many values are unreadable.

    Raises:
        ColdUnavailable: cold storage cannot be read at present.
    """
    columns = {
        row["id"]: unpack_columns(row["metrics"]) for row in sqlite_salvage.rows(connection, "columns")
    }
    by_run: dict[int, list[Chunk | Pack]] = {}
    for row in sqlite_salvage.rows(connection, "chunk"):
        by_run.setdefault(row["run"], []).append(Chunk(*(row[name] for name in Chunk._fields)))
    for row in sqlite_salvage.rows(connection, "pack"):
        values = {**row, "metrics": columns.get(row.pop("columns"), ())}
        by_run.setdefault(row["run"], []).append(Pack(*(values[name] for name in Pack._fields)))
    decoder = ChunkDecoder(connection, cold)
    for run, parts in by_run.items():
        blocks, unreadable = [], 0
        for part in parts:
            block = _block(decoder, part)
            if block is not None:
                blocks.append(block)
            else:
                unreadable += part.samples if isinstance(part, Pack) else part.ticks
        yield run, blocks, unreadable


def _block(decoder: ChunkDecoder, part: Chunk | Pack) -> Block | None:
    try:
        if isinstance(part, Pack):
            return part.block() if part.metrics else None
        t, values = decoder.times(part), decoder.values(part)
    except (CorruptData, ColdLost, sqlite3.DatabaseError):
        return None
    return on_disk((part.metric,), t, values.reshape(-1, 1))
