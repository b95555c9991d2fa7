"""Group commit: writes the records of concurrent requests in one transaction.

A commit waits for the disk, whether it writes the records of one request or of a hundred. Requests that
arrive during a commit therefore wait for the next one and share it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

from runvitals.store.supervised_thread import SupervisedThread

Item = TypeVar("Item")
Result = TypeVar("Result")
_MAX_ITEMS = 500
_MAX_PAUSE_S = 5.0


class GroupCommit(Generic[Item, Result]):
    """A thread that commits the items of many requests together.

    Args:
        commit: commits some items, all or none, and returns their results in the same order.
        item_errors: errors that a single item causes. The items are then committed one by one, and only the
            request whose item fails gets the error. Any other error goes to all requests.
    """

    def __init__(
        self,
        name: str,
        commit: Callable[[Sequence[Item]], Sequence[Result]],
        item_errors: tuple[type[Exception], ...],
    ) -> None:
        self._commit = commit
        self._item_errors = item_errors
        self._changed = threading.Condition()
        self._queue: list[tuple[Item, Future[Result]]] = []
        self.thread = SupervisedThread(name, self._turn, self._wake, longest_pause_s=_MAX_PAUSE_S)
        self.thread.start()

    async def submit(self, item: Item) -> Result:
        """Commit an item. Returns its result once it is committed."""
        future: Future[Result] = Future()
        with self._changed:
            if self.thread.closing.is_set():
                raise RuntimeError("the server is shutting down")
            self._queue.append((item, future))
            self._changed.notify()
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Commit the queued items and end the thread."""
        with self._changed:  # no item may be queued after the last commit
            self.thread.closing.set()
        self.thread.close()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify()

    def _turn(self) -> bool:
        with self._changed:
            while not (self._queue or self.thread.closing.is_set()):
                self._changed.wait()
            if not self._queue:
                return False
            group, self._queue = self._queue[:_MAX_ITEMS], self._queue[_MAX_ITEMS:]
        # Skips requests that were cancelled; from here on they cannot be.
        self._commit_group([queued for queued in group if queued[1].set_running_or_notify_cancel()])
        return True

    def _commit_group(self, group: list[tuple[Item, Future[Result]]]) -> None:
        if not group:
            return
        try:
            results = self._commit([item for item, _ in group])
            if len(results) != len(group):
                raise RuntimeError(f"{len(results)} results for {len(group)} items")
        except self._item_errors as error:
            if len(group) == 1:
                group[0][1].set_exception(error)
            else:
                for queued in group:
                    self._commit_group([queued])
        except Exception as error:  # noqa: BLE001 - raised in every request that waits
            for _, future in group:
                future.set_exception(error)
        else:
            for (_, future), result in zip(group, results, strict=True):
                future.set_result(result)
