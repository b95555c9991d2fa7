"""Which batches were stored: ranges of numbers, in memory and in the table."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

from runvitals.store.samples.sqlite_chunks import database, log
from runvitals.store.samples.sqlite_chunks.stored_batches import SequenceRanges, StoredBatches

RUN, WRITER = 3, 7


def stored(connection: sqlite3.Connection) -> list[tuple[int, int]]:
    return connection.execute("SELECT first, last FROM mark ORDER BY first").fetchall()


def written(batches: StoredBatches, connection: sqlite3.Connection) -> int:
    """How many rows a turn changes."""
    before = connection.total_changes
    with database.transaction(connection):
        batches.write()
    batches.written()
    return connection.total_changes - before


def test_the_table_has_what_was_added_in_any_order(tmp_path: Path) -> None:
    chance = random.Random(5)
    with closing(database.open_for_writing(str(tmp_path / "log.db"), log.FORMAT)) as connection:
        batches, expected = StoredBatches(connection), set[int]()
        for _ in range(300):
            for _ in range(chance.randrange(4)):
                number = chance.randrange(200)
                batches.add(RUN, WRITER, number)
                expected.add(number)
            if chance.random() < 0.5:
                written(batches, connection)
            if chance.random() < 0.1:
                with database.transaction(connection):  # what is written is written again if that fails
                    batches.write()
        written(batches, connection)
        ranges = SequenceRanges()
        for number in expected:
            ranges.add(number)
        assert stored(connection) == [(first, last) for first, last in ranges.ranges]
        assert StoredBatches(connection).of(RUN, WRITER).ranges == ranges.ranges


def test_what_replaces_the_ranges_of_a_writer_is_written(tmp_path: Path) -> None:
    with closing(database.open_for_writing(str(tmp_path / "log.db"), log.FORMAT)) as connection:
        batches = StoredBatches(connection)
        for number in (1, 5, 9):
            batches.add(RUN, WRITER, number)
        written(batches, connection)
        batches.put(RUN, {WRITER: [(2, 3), (9, 9)]})
        batches.add(RUN, WRITER, 4)
        written(batches, connection)
        assert stored(connection) == [(2, 4), (9, 9)]


def test_a_batch_changes_one_row_however_many_gaps_there_are(tmp_path: Path) -> None:
    with closing(database.open_for_writing(str(tmp_path / "log.db"), log.FORMAT)) as connection:
        batches = StoredBatches(connection)
        for number in range(0, 20_000, 2):
            batches.add(RUN, WRITER, number)
        assert written(batches, connection) == 10_000
        batches.add(RUN, WRITER, 20_000)
        assert written(batches, connection) == 1
