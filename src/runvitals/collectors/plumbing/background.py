"""A source whose calls may hang (a driver, a server, a library), asked by a thread of its own.

A call into a driver that has lost its device may not return for minutes, or ever. Such a call delays no
other source and not the end of the run: the tick takes what has been answered, and goes on.
"""

from __future__ import annotations

import _thread
import os

from runvitals.collectors.base import Every, Tick

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Hung(Exception):
    """The question has been without an answer for longer than it may be."""


class BackgroundReader:
    """Asks in one thread that stays, and hands each answer to a tick.

    Args:
        ask: writes a moment's readings into the tick it is given; runs in the thread.
        every_s: asks at most this often; 0 = at every tick.
        patience_s: how long a tick waits for its own answer. An answer that comes later goes into the next
            tick.
        hung_after_s: an answer that takes longer is `Hung`.

    Raises:
        Hung: by `sample`, for as long as the answer is overdue.
        Exception: by `sample`, what `ask` raised, and again until an answer comes that is none: whoever backs
            off from a failing source must not take "no news" for "it works again".

    Example:
        >>> aside = BackgroundReader(lambda tick: tick.gauges.update({"fridge.temp": 4.0}), patience_s=0.05)
        >>> tick = Tick(100.0)
        >>> aside.sample(tick)
        >>> tick.gauges
        {'fridge.temp': 4.0}
    """

    __slots__ = (
        "_answer", "_ask", "_asked_s", "_busy", "_closed", "_done", "_error", "_every", "_failed", "_go",
        "_hung_after_s", "_patience_s", "_pid", "_started",
    )  # fmt: skip

    def __init__(
        self,
        ask: Callable[[Tick], None],
        every_s: float = 0.0,
        patience_s: float = 0.0,
        hung_after_s: float = 30.0,
    ) -> None:
        self._ask = ask
        self._every = Every(every_s)
        self._patience_s = patience_s
        self._hung_after_s = hung_after_s
        self._asked_s = 0.0
        self._answer: Tick | None = None
        self._error: Exception | None = None
        self._failed: Exception | None = None
        self._closed = False
        self._begin()

    def sample(self, tick: Tick) -> None:
        """Put the newest answer into the tick, and ask anew if it is time."""
        if self._pid != os.getpid():
            self._begin()  # a fork leaves its threads behind
        if self._busy and self._done.acquire(blocking=False):
            # Late. Of a source that was failing it is as old as the backoff: good news, but no readings.
            was_failing = self._failed is not None
            self._take(None if was_failing else tick)
        if not self._busy and self._every.due(tick.mono_s):
            self._start(tick.mono_s)
            if self._patience_s and self._done.acquire(timeout=self._patience_s):
                self._take(tick)
        overdue_s = tick.mono_s - self._asked_s
        if self._busy and overdue_s > self._hung_after_s:
            self._failed = Hung(f"no answer for {overdue_s:.0f} s")
        if self._failed is not None:
            raise self._failed

    @property
    def pending(self) -> bool:
        """Whether it was asked and has not answered."""
        return self._busy

    def close(self) -> None:
        """Let the thread end. One that hangs is left behind; it holds up nobody."""
        self._closed = True
        if self._go.locked():
            self._go.release()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._busy = False
        self._started = False
        # Both are held while there is nothing to do, and nothing done.
        self._go = _thread.allocate_lock()
        self._done = _thread.allocate_lock()
        self._go.acquire()
        self._done.acquire()

    def _start(self, mono_s: float) -> None:
        self._answer = Tick(mono_s)
        self._asked_s = mono_s
        self._busy = True
        if not self._started:
            self._started = True
            _thread.start_new_thread(self._serve, ())
        self._go.release()

    def _take(self, tick: Tick | None) -> None:
        """What the thread has left: its readings into the tick, or its error to raise."""
        answer, self._answer = self._answer, None
        self._failed, self._error = self._error, None
        self._busy = False
        if self._failed is None and tick is not None and answer is not None:
            tick.gauges.update(answer.gauges)
            tick.counters.update(answer.counters)
            tick.events += answer.events

    def _serve(self) -> None:
        while True:
            self._go.acquire()
            if self._closed or self._answer is None:
                return
            try:
                self._ask(self._answer)
            except Exception as error:  # noqa: BLE001 - raised where the tick is taken, whatever it is
                self._error = error
            self._done.release()
