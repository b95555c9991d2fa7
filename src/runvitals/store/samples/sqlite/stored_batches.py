"""The batches that were stored: the sequence numbers of each writer of a run, as ranges without gaps."""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_MAX_WRITERS = 100_000
KEPT_RANGES = 256
"""Ranges of a writer in memory, and up to twice as many while it writes."""

_WriterKey = tuple[int, int]


class SequenceRanges:
    """A set of sequence numbers, as ranges [first, last]. A writer that counts up has a single range.

    Example:
        >>> stored = SequenceRanges()
        >>> [stored.add(number) for number in (1, 2, 4, 2, 3)], stored.ranges
        ([True, True, True, False, True], [[1, 4]])

    Attributes:
        changed, removed: the first numbers of the ranges that are not stored as they are, and of those that
            are stored and no more.
    """

    __slots__ = ("changed", "ranges", "removed")

    def __init__(self, ranges: list[list[int]] | None = None) -> None:
        self.ranges = ranges or []
        self.changed: set[int] = set()
        self.removed: set[int] = set()

    def add(self, number: int) -> bool:
        """Add a number; False if it was there before."""
        ranges = self.ranges
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
            self.changed.add(ranges[-1][0])
            return True
        after = bisect_right(ranges, [number, 1 << 63])
        if after and ranges[after - 1][1] >= number:
            return False
        joins_before = after > 0 and ranges[after - 1][1] == number - 1
        joins_after = after < len(ranges) and ranges[after][0] == number + 1
        if joins_after:
            self._remove(ranges[after][0])
        if joins_before and joins_after:
            ranges[after - 1][1] = ranges.pop(after)[1]
        elif joins_before:
            ranges[after - 1][1] = number
        elif joins_after:
            ranges[after][0] = number
        else:
            ranges.insert(after, [number, number])
        first = ranges[after - 1 if joins_before else after][0]
        self.changed.add(first)
        self.removed.discard(first)
        return True

    def _remove(self, first: int) -> None:
        """Note that no range begins with a number any more."""
        self.changed.discard(first)
        self.removed.add(first)

    def changed_ranges(self) -> list[list[int]]:
        """Return the ranges that are not stored as they are."""
        return [self.ranges[bisect_right(self.ranges, [first, 1 << 63]) - 1] for first in self.changed]

    def note_written(self) -> None:
        """The ranges are stored as they are."""
        self.changed.clear()
        self.removed.clear()

    def __contains__(self, number: int) -> bool:
        after = bisect_right(self.ranges, [number, 1 << 63])
        return after > 0 and self.ranges[after - 1][1] >= number


@dataclass(slots=True)
class _Writer:
    """The numbers of one writer.

    Args:
        begins: smaller numbers are in the table, except those of `late`.
        newest: the numbers from `begins` on, all of them.
        late: smaller numbers that were added since the table was written.
        replaces: whether the table's rows of the writer are replaced when it is written.
    """

    begins: int
    newest: SequenceRanges
    late: SequenceRanges = field(default_factory=SequenceRanges)
    replaces: bool = False


class StoredBatches:
    """The stored batches of every writer.

    They are in the table `mark`, and the newest ranges of writers that write are in memory too.

    A relay numbers a batch by its first record, so its numbers have gaps, and each of its deliveries is a
    range: some hundred thousand a week. Only the newest ones are kept in memory.

    The table may lag behind the log, whose rows are added again when the store is opened.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._writers: dict[_WriterKey, _Writer] = {}
        self._changed: set[_WriterKey] = set()

    def contains(self, run: int, writer: int, number: int) -> bool:
        """Return whether a batch was stored."""
        batches = self._load(run, writer)
        if number >= batches.begins:
            return number in batches.newest
        return number in batches.late or self._in_table(run, writer, number)

    def add(self, run: int, writer: int, number: int) -> None:
        """Add a batch that is durable in the log."""
        batches = self._load(run, writer)
        if number >= batches.begins:
            batches.newest.add(number)
        elif not self._in_table(run, writer, number):
            batches.late.add(number)
        self._changed.add((run, writer))

    def of_run(self, run: int) -> dict[int, list[tuple[int, int]]]:
        """Return the ranges of all writers of a run."""
        rows = self._connection.execute("SELECT DISTINCT writer FROM mark WHERE run=?", (run,))
        writers = {writer for (writer,) in rows} | {writer for of, writer in self._writers if of == run}
        by_writer = {writer: self._all_ranges(run, writer) for writer in sorted(writers)}
        return {writer: ranges for writer, ranges in by_writer.items() if ranges}

    def put(self, run: int, stored: Mapping[int, Sequence[tuple[int, int]]]) -> None:
        """Replace the ranges of some writers. `write` makes it durable."""
        for writer, ranges in stored.items():
            replacing = SequenceRanges([list(batch_range) for batch_range in ranges])
            replacing.changed.update(first for first, _ in ranges)
            self._writers[run, writer] = _Writer(0, replacing, replaces=True)
            self._changed.add((run, writer))

    def write(self) -> None:
        """Update the table, inside a transaction."""
        changed = [(key, self._writers[key]) for key in self._changed]
        self._connection.executemany(
            "DELETE FROM mark WHERE run=? AND writer=?", [key for key, batches in changed if batches.replaces]
        )
        parts = [(key, part) for key, batches in changed for part in (batches.newest, batches.late)]
        self._connection.executemany(
            "DELETE FROM mark WHERE run=? AND writer=? AND first=?",
            ((*key, first) for key, part in parts for first in part.removed),
        )
        self._connection.executemany(
            "INSERT OR REPLACE INTO mark (run, writer, first, last) VALUES (?, ?, ?, ?)",
            ((*key, *batch_range) for key, part in parts for batch_range in part.changed_ranges()),
        )

    def note_written(self) -> None:
        """The transaction of `write` is durable."""
        for key in self._changed:
            batches = self._writers[key]
            ranges = batches.newest.ranges
            if len(ranges) > 2 * KEPT_RANGES:
                del ranges[:-KEPT_RANGES]
                batches.begins = ranges[0][0]
            batches.newest.note_written()
            batches.late = SequenceRanges()
            batches.replaces = False
        self._changed.clear()
        if len(self._writers) > _MAX_WRITERS:
            self._writers.clear()

    def delete(self, run: int) -> None:
        """Delete a run's writers from the table, inside a transaction."""
        self._connection.execute("DELETE FROM mark WHERE run=?", (run,))

    def note_deleted(self, run: int) -> None:
        """The transaction of `delete` is durable."""
        for key in [key for key in self._writers if key[0] == run]:
            del self._writers[key]
            self._changed.discard(key)

    def _load(self, run: int, writer: int) -> _Writer:
        key = (run, writer)
        batches = self._writers.get(key)
        if batches is None:
            rows = self._connection.execute(
                "SELECT first, last FROM mark WHERE run=? AND writer=? ORDER BY first DESC LIMIT ?",
                (*key, KEPT_RANGES),
            )
            newest = [list(row) for row in rows][::-1]
            begins = newest[0][0] if len(newest) == KEPT_RANGES else 0
            batches = self._writers[key] = _Writer(begins, SequenceRanges(newest))
        return batches

    def _in_table(self, run: int, writer: int, number: int) -> bool:
        row = self._connection.execute(
            "SELECT last FROM mark WHERE run=? AND writer=? AND first<=? ORDER BY first DESC LIMIT 1",
            (run, writer, number),
        ).fetchone()
        return row is not None and row[0] >= number

    def _all_ranges(self, run: int, writer: int) -> list[tuple[int, int]]:
        batches = self._writers.get((run, writer))
        ranges: list[tuple[int, int]] = []
        if batches is None or not batches.replaces:
            ranges += self._connection.execute(
                "SELECT first, last FROM mark WHERE run=? AND writer=?", (run, writer)
            )
        if batches is not None:
            ranges += [
                (first, last) for part in (batches.newest, batches.late) for first, last in part.ranges
            ]
        return _join(ranges)


def _join(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges in order, those that overlap or adjoin as one."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(last, joined[-1][1])
        else:
            joined.append((first, last))
    return joined
