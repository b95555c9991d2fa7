"""Hands batches from the event loop to the sample store's commit thread, and returns the results.

Batches that arrive within one iteration of the event loop are submitted together, because waking the other
thread costs more than the rest of this module.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from runvitals.store.samples.interface import CommitAck, SampleBatch, SampleStore, StoreClosed

OnDone = Callable[["tuple[bool, ...] | BaseException"], None]
_Waiting = tuple[Sequence[SampleBatch], OnDone]
log = logging.getLogger("runvitals.server")


class SampleCommits:
    """Batches that are being committed. For use in the event loop's thread only.

    Attributes:
        batches: number of batches that are not settled yet.
        on_stored: called with the batches that were stored now, before their request is answered. It must
            not wait.
    """

    def __init__(self, store: SampleStore) -> None:
        self._store = store
        self._waiting: list[_Waiting] = []
        self.batches = 0
        self.on_stored: Callable[[Sequence[SampleBatch]], None] | None = None

    @property
    def gathering(self) -> bool:
        """Whether batches of this iteration of the event loop wait to be submitted to the store."""
        return bool(self._waiting)

    async def commit(self, batches: Sequence[SampleBatch]) -> tuple[bool, ...]:
        """Commit batches. Returns, for each batch, whether it was new, once all of them are durable.

        Raises:
            StoreError, ValueError: what `SampleStore.append` does.
        """
        future: asyncio.Future[tuple[bool, ...]] = asyncio.get_running_loop().create_future()

        def settle(result: tuple[bool, ...] | BaseException) -> None:
            if future.done():
                return  # its request was cancelled
            if isinstance(result, tuple):
                future.set_result(result)
            else:
                future.set_exception(result)

        self.submit(batches, settle)
        return await future

    def submit(self, batches: Sequence[SampleBatch], on_done: OnDone) -> None:
        """Like `commit`, with a callback.

        Args:
            on_done: called once the batches are durable with, for each of them, whether it was new; or with
                the error.
        """
        if not self._waiting:
            loop = asyncio.get_running_loop()
            loop.call_soon(self._submit_waiting, loop)
        self._waiting.append((batches, on_done))
        self.batches += len(batches)

    def _submit_waiting(self, loop: asyncio.AbstractEventLoop) -> None:
        waiting, self._waiting = self._waiting, []
        self._submit(waiting, loop)

    def _submit(self, waiting: list[_Waiting], loop: asyncio.AbstractEventLoop) -> None:
        try:
            done = self._store.submit([batch for batches, _ in waiting for batch in batches])
        except StoreClosed as error:
            self._settle(waiting, error)
            return
        done.add_done_callback(lambda done: loop.call_soon_threadsafe(self._note_done, waiting, done, loop))

    def _note_done(
        self, waiting: list[_Waiting], done: Future[CommitAck], loop: asyncio.AbstractEventLoop
    ) -> None:
        error = done.exception()
        if isinstance(error, ValueError) and len(waiting) > 1:
            for request in waiting:  # one batch is invalid: commit the others without it
                self._submit([request], loop)
            return
        self._settle(waiting, error if error is not None else done.result())

    def _settle(self, waiting: list[_Waiting], result: CommitAck | BaseException) -> None:
        start = 0
        for batches, on_done in waiting:
            end = start + len(batches)
            self.batches -= len(batches)
            if self.on_stored is not None and isinstance(result, CommitAck):
                new = zip(batches, result.fresh[start:end], strict=True)
                self.on_stored([batch for batch, fresh in new if fresh])
            try:
                on_done(result.fresh[start:end] if isinstance(result, CommitAck) else result)
            except Exception:  # the other requests must still get their responses
                log.exception("failed to respond to an ingest request")
            start = end
