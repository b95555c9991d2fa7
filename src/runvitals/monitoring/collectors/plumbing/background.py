"""Read a source that may block (a driver, a server, a library) in a background thread.

A call into a driver that has lost its device may block for minutes, or forever. In a thread, it delays
neither the other sources nor the end of the run: a tick takes the results that have arrived, and continues.
"""

from __future__ import annotations

import _thread
import os

from runvitals.monitoring.collectors.base import Every, Tick

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Hung(Exception):
    """The current read has not returned within `hung_after_s`."""


class BackgroundReader:
    """Runs reads in one permanent thread, and copies their results into ticks.

    Args:
        read: writes the current values into the tick it is given; runs in the thread.
        every_s: the shortest time between two reads; 0 reads at every tick.
        patience_s: how long a tick waits for its read. A result that arrives later goes into the next tick.
        hung_after_s: a read that takes longer counts as hung.

    Raises:
        Hung: by `sample`, as long as a read is overdue.
        Exception: by `sample`, what `read` raised, again and again until a read succeeds. Otherwise a
            caller that backs off from a failing source would mistake the lack of news for a recovery.

    Example:
        >>> reader = BackgroundReader(lambda tick: tick.gauges.update({"fridge.temp": 4.0}), patience_s=0.05)
        >>> tick = Tick(100.0)
        >>> reader.sample(tick)
        >>> tick.gauges
        {'fridge.temp': 4.0}
    """

    __slots__ = (
        "_busy", "_closed", "_done", "_error", "_every", "_failed", "_go", "_hung_after_s", "_patience_s",
        "_pid", "_read", "_result", "_started", "_started_s",
    )  # fmt: skip

    def __init__(
        self,
        read: Callable[[Tick], None],
        every_s: float = 0.0,
        patience_s: float = 0.0,
        hung_after_s: float = 30.0,
    ) -> None:
        self._read = read
        self._every = Every(every_s)
        self._patience_s = patience_s
        self._hung_after_s = hung_after_s
        self._started_s = 0.0
        self._result: Tick | None = None
        self._error: Exception | None = None
        self._failed: Exception | None = None
        self._closed = False
        self._begin()

    def sample(self, tick: Tick) -> None:
        """Copy the newest result into the tick, and start the next read if it is due."""
        if self._pid != os.getpid():
            self._begin()  # threads do not survive a fork
        if self._busy and self._done.acquire(blocking=False):
            # A late result. After a failure it may be as old as the backoff: it proves that the source works
            # again, but its values are outdated.
            was_failing = self._failed is not None
            self._take(None if was_failing else tick)
        if not self._busy and self._every.due(tick.mono_s):
            self._start(tick.mono_s)
            if self._patience_s and self._done.acquire(timeout=self._patience_s):
                self._take(tick)
        overdue_s = tick.mono_s - self._started_s
        if self._busy and overdue_s > self._hung_after_s:
            self._failed = Hung(f"no answer for {overdue_s:.0f} s")
        if self._failed is not None:
            raise self._failed

    @property
    def pending(self) -> bool:
        """Whether a read is in progress."""
        return self._busy

    def close(self) -> None:
        """Stop the thread. One that hangs is abandoned; as a daemon it delays nothing."""
        self._closed = True
        if self._go.locked():
            self._go.release()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._busy = False
        self._started = False
        # `_go` is held while there is nothing to do, `_done` while there is no result.
        self._go = _thread.allocate_lock()
        self._done = _thread.allocate_lock()
        self._go.acquire()
        self._done.acquire()

    def _start(self, mono_s: float) -> None:
        self._result = Tick(mono_s)
        self._started_s = mono_s
        self._busy = True
        if not self._started:
            self._started = True
            _thread.start_new_thread(self._serve, ())
        self._go.release()

    def _take(self, tick: Tick | None) -> None:
        """Take the thread's result: copy its values into the tick, or remember its error."""
        result, self._result = self._result, None
        self._failed, self._error = self._error, None
        self._busy = False
        if self._failed is None and tick is not None and result is not None:
            tick.gauges.update(result.gauges)
            tick.counters.update(result.counters)
            tick.events += result.events

    def _serve(self) -> None:
        while True:
            self._go.acquire()
            if self._closed or self._result is None:
                return
            try:
                self._read(self._result)
            except Exception as error:  # noqa: BLE001 - `sample` raises it again
                self._error = error
            self._done.release()
