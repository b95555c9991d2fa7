"""Rows of requests that arrive at the same time, written in one transaction.

A commit waits for the disk, whether it writes the rows of one request or of a hundred. This is for threads;
`server.ingest.metadata_commits` is for the event loop.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

Item = TypeVar("Item")
_MAX_ITEMS = 500


class SharedCommits(Generic[Item]):
    """Commits what several threads add. Thread-safe.

    Args:
        commit: writes some items in one transaction, all or none.

    Example:
        >>> commits = SharedCommits(lambda rows: database.write(partial(_insert, rows)))
        >>> commits.add(row)  # is on the disk now
    """

    def __init__(self, commit: Callable[[Sequence[Item]], object]) -> None:
        self._commit = commit
        self._waiting: list[tuple[Item, Future[None]]] = []
        self._committing = threading.Lock()

    def add(self, item: Item) -> None:
        """Return when an item was committed, alone or with others; raise what its commit raised."""
        mine: Future[None] = Future()
        self._waiting.append((item, mine))
        with self._committing:
            while not mine.done():
                group, self._waiting[:_MAX_ITEMS] = self._waiting[:_MAX_ITEMS], []
                self._commit_group(group)
        mine.result()

    def _commit_group(self, group: Sequence[tuple[Item, Future[None]]]) -> None:
        try:
            self._commit([item for item, _ in group])
        except Exception as error:  # noqa: BLE001 - raised by `add`
            if len(group) == 1:
                group[0][1].set_exception(error)
                return
            for entry in group:  # only the request whose item is at fault fails
                self._commit_group([entry])
        else:
            for _, future in group:
                future.set_result(None)
