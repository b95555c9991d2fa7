"""Which batches were stored: ranges of numbers, in memory and in the table."""

from __future__ import annotations

import itertools
import random
import sqlite3
import tracemalloc
from contextlib import closing
from pathlib import Path

from runvitals.store.samples.sqlite import database, log
from runvitals.store.samples.sqlite.stored_batches import KEPT_RANGES, SequenceRanges, StoredBatches

RUN, WRITER = 3, 7


def stored(connection: sqlite3.Connection) -> list[tuple[int, int]]:
    return connection.execute("SELECT first, last FROM mark ORDER BY first").fetchall()


def written(batches: StoredBatches, connection: sqlite3.Connection) -> int:
    """How many rows a turn changes."""
    before = connection.total_changes
    with database.transaction(connection):
        batches.write()
    batches.note_written()
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
        assert StoredBatches(connection).of_run(RUN) == {WRITER: stored(connection)}


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


def test_a_writer_with_many_gaps_takes_no_more_memory_and_loses_no_number(tmp_path: Path) -> None:
    """A relay that delivers every two seconds makes 300,000 ranges a week."""
    chance = random.Random(7)
    with closing(database.open_for_writing(str(tmp_path / "log.db"), log.FORMAT)) as connection:
        batches, number = StoredBatches(connection), 0
        tracemalloc.start()
        for _ in range(40):
            for _ in range(1_000):
                batches.add(RUN, WRITER, number)
                number += 2
            written(batches, connection)
        used_bytes, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert used_bytes < 300_000  # 40,000 ranges in memory take 4 MB
        for opened in (batches, StoredBatches(connection)):
            for each in chance.sample(range(number), 2_000):
                assert opened.contains(RUN, WRITER, each) == (each % 2 == 0)


def test_numbers_that_come_late_are_stored_once(tmp_path: Path) -> None:
    chance = random.Random(11)
    with closing(database.open_for_writing(str(tmp_path / "log.db"), log.FORMAT)) as connection:
        batches, expected = StoredBatches(connection), set[int]()
        top = 8 * KEPT_RANGES
        for number in range(0, top, 2):
            batches.add(RUN, WRITER, number)
            expected.add(number)
        written(batches, connection)
        for _ in range(400):
            late = chance.randrange(top + 10)
            assert batches.contains(RUN, WRITER, late) == (late in expected)
            batches.add(RUN, WRITER, late)
            expected.add(late)
            assert batches.contains(RUN, WRITER, late)
            if chance.random() < 0.1:
                written(batches, connection)
            if chance.random() < 0.05:
                with database.transaction(connection):  # a write that is not known to have succeeded
                    batches.write()
        written(batches, connection)
        for opened in (batches, StoredBatches(connection)):
            ranges = opened.of_run(RUN)[WRITER]
            assert {n for first, last in ranges for n in range(first, last + 1)} == expected
            assert all(last + 1 < first for (_, last), (first, _) in itertools.pairwise(ranges))
