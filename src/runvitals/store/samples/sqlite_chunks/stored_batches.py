"""Which batches were stored: of each writer of a run the numbers seen, as stretches without a hole."""

from __future__ import annotations

import sqlite3
from bisect import bisect_right

_MOST_IN_MEMORY = 100_000

Writer = tuple[int, int]


class Seen:
    """Numbers seen, as stretches [first, last]. A writer that counts up has a single one.

    Example:
        >>> seen = Seen()
        >>> [seen.add(number) for number in (1, 2, 4, 2, 3)], seen.stretches
        ([True, True, True, False, True], [[1, 4]])
    """

    __slots__ = ("stretches",)

    def __init__(self, stretches: list[list[int]] | None = None) -> None:
        self.stretches = stretches or []

    def add(self, number: int) -> bool:
        """Note a number; False if it was seen before."""
        stretches = self.stretches
        if stretches and number == stretches[-1][1] + 1:
            stretches[-1][1] = number
            return True
        after = bisect_right(stretches, [number, 1 << 63])
        if after and stretches[after - 1][1] >= number:
            return False
        joins_before = after > 0 and stretches[after - 1][1] == number - 1
        joins_after = after < len(stretches) and stretches[after][0] == number + 1
        if joins_before and joins_after:
            stretches[after - 1][1] = stretches.pop(after)[1]
        elif joins_before:
            stretches[after - 1][1] = number
        elif joins_after:
            stretches[after][0] = number
        else:
            stretches.insert(after, [number, number])
        return True

    def __contains__(self, number: int) -> bool:
        after = bisect_right(self.stretches, [number, 1 << 63])
        return after > 0 and self.stretches[after - 1][1] >= number


class Marks:
    """What was seen of every writer: in memory for those that write, in the table `mark` for all.

    The table may lag behind the log, whose rows are added again when a store is opened.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._seen: dict[Writer, Seen] = {}
        self._changed: set[Writer] = set()

    def seen(self, run: int, writer: int) -> Seen:
        key = (run, writer)
        found = self._seen.get(key)
        if found is None:
            rows = self._connection.execute(
                "SELECT first, last FROM mark WHERE run=? AND writer=? ORDER BY first", key
            )
            found = self._seen[key] = Seen([list(row) for row in rows])
        return found

    def add(self, run: int, writer: int, seq: int) -> None:
        """Note a batch that is durable in the log."""
        self.seen(run, writer).add(seq)
        self._changed.add((run, writer))

    def write(self) -> None:
        """Bring the table up to date, inside a transaction."""
        changed = list(self._changed)
        self._connection.executemany("DELETE FROM mark WHERE run=? AND writer=?", changed)
        self._connection.executemany(
            "INSERT INTO mark (run, writer, first, last) VALUES (?, ?, ?, ?)",
            ((*key, first, last) for key in changed for first, last in self._seen[key].stretches),
        )

    def written(self) -> None:
        """The transaction of `write` is durable."""
        self._changed.clear()
        if len(self._seen) > _MOST_IN_MEMORY:
            self._seen.clear()

    def delete(self, run: int) -> None:
        """Delete a run's writers from the table, inside a transaction."""
        self._connection.execute("DELETE FROM mark WHERE run=?", (run,))

    def deleted(self, run: int) -> None:
        """The transaction of `delete` is durable."""
        for key in [key for key in self._seen if key[0] == run]:
            del self._seen[key]
            self._changed.discard(key)
