"""Which batches were stored: the sequence numbers of each writer of a run, as ranges without gaps."""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections.abc import Mapping, Sequence

_MAX_WRITERS = 100_000

_WriterKey = tuple[int, int]


class SequenceRanges:
    """A set of sequence numbers, as ranges [first, last]. A writer that counts up has a single range.

    Example:
        >>> stored = SequenceRanges()
        >>> [stored.add(number) for number in (1, 2, 4, 2, 3)], stored.ranges
        ([True, True, True, False, True], [[1, 4]])

    Attributes:
        changed, removed: the first numbers of the ranges that are not stored as they are, and of those that
            are stored and no more: a writer may have a hundred thousand ranges.
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
        """The ranges that are not stored as they are."""
        return [self.ranges[bisect_right(self.ranges, [first, 1 << 63]) - 1] for first in self.changed]

    def __contains__(self, number: int) -> bool:
        after = bisect_right(self.ranges, [number, 1 << 63])
        return after > 0 and self.ranges[after - 1][1] >= number


class StoredBatches:
    """The stored batches of every writer: in the table `mark`, and in memory for those that write.

    The table may lag behind the log, whose rows are added again when the store is opened.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._ranges: dict[_WriterKey, SequenceRanges] = {}
        self._changed: set[_WriterKey] = set()
        self._replaced: set[_WriterKey] = set()

    def of(self, run: int, writer: int) -> SequenceRanges:
        key = (run, writer)
        ranges = self._ranges.get(key)
        if ranges is None:
            rows = self._connection.execute(
                "SELECT first, last FROM mark WHERE run=? AND writer=? ORDER BY first", key
            )
            ranges = self._ranges[key] = SequenceRanges([list(row) for row in rows])
        return ranges

    def of_run(self, run: int) -> dict[int, list[tuple[int, int]]]:
        """The ranges of all writers of a run."""
        rows = self._connection.execute("SELECT DISTINCT writer FROM mark WHERE run=?", (run,))
        writers = {writer for (writer,) in rows} | {writer for of, writer in self._ranges if of == run}
        found = {writer: self.of(run, writer).ranges for writer in sorted(writers)}
        return {
            writer: [(first, last) for first, last in ranges] for writer, ranges in found.items() if ranges
        }

    def put(self, run: int, stored: Mapping[int, Sequence[tuple[int, int]]]) -> None:
        """Replace the ranges of some writers. `write` makes it durable."""
        for writer, ranges in stored.items():
            replacing = self._ranges[run, writer] = SequenceRanges([list(one) for one in ranges])
            replacing.changed.update(first for first, _ in ranges)
            self._changed.add((run, writer))
            self._replaced.add((run, writer))

    def add(self, run: int, writer: int, seq: int) -> None:
        """Add a batch that is durable in the log."""
        self.of(run, writer).add(seq)
        self._changed.add((run, writer))

    def write(self) -> None:
        """Update the table, inside a transaction."""
        self._connection.executemany("DELETE FROM mark WHERE run=? AND writer=?", list(self._replaced))
        changed = [(key, self._ranges[key]) for key in self._changed]
        self._connection.executemany(
            "DELETE FROM mark WHERE run=? AND writer=? AND first=?",
            ((*key, first) for key, ranges in changed for first in ranges.removed),
        )
        self._connection.executemany(
            "INSERT OR REPLACE INTO mark (run, writer, first, last) VALUES (?, ?, ?, ?)",
            ((*key, *one) for key, ranges in changed for one in ranges.changed_ranges()),
        )

    def written(self) -> None:
        """The transaction of `write` is durable."""
        for key in self._changed:
            self._ranges[key].changed.clear()
            self._ranges[key].removed.clear()
        self._changed.clear()
        self._replaced.clear()
        if len(self._ranges) > _MAX_WRITERS:
            self._ranges.clear()

    def delete(self, run: int) -> None:
        """Delete a run's writers from the table, inside a transaction."""
        self._connection.execute("DELETE FROM mark WHERE run=?", (run,))

    def deleted(self, run: int) -> None:
        """The transaction of `delete` is durable."""
        for key in [key for key in self._ranges if key[0] == run]:
            del self._ranges[key]
            self._changed.discard(key)
            self._replaced.discard(key)
