"""Signs of life, and what a person wants of runs: told to and asked from the catalogue once a second.

A request says that its writer is alive. A commit for each would cost more than its samples; the state of a
run, which waits for ten silent seconds at least, does not get worse from a second of delay.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable

from runvitals.server.clock import Clock
from runvitals.store.metadata import MetadataStore, WriterHeartbeat
from runvitals.store.supervised_thread import SupervisedThread

EVERY_S = 1.0
_LONGEST_PAUSE_S = 5.0
_ASKED_FOR_S = 300.0
"""Runs that were silent for longer are not asked about."""

log = logging.getLogger("runvitals.server")


class Presence:
    """A thread that looks after both.

    Args:
        clock: the time now, ms UTC. Where it is a `Clock` that was set, what was heard moves along.

    Attributes:
        stopped: numbers of the runs that a person wants to end.
        deleted: of runs in the trash.
    """

    def __init__(self, catalogue: MetadataStore, clock: Callable[[], int]) -> None:
        self._catalogue = catalogue
        self._clock = clock
        self.stopped: frozenset[int] = frozenset()
        self.deleted: frozenset[int] = frozenset()
        self._signs: dict[int, tuple[int, int]] = {}
        self._active: dict[int, float] = {}
        self._lock = threading.Lock()
        self.thread = SupervisedThread(
            "presence", self._turn, every_s=EVERY_S, longest_pause_s=_LONGEST_PAUSE_S
        )
        catalogue.writers.not_heard_after(clock())  # it may have been set back since the last server ended
        self.thread.start()

    def heard(self, run_id: int, writer_id: int, heard_ms: int, last_ms: int) -> None:
        """Note that something came from a writer; its newest record is of `last_ms`."""
        with self._lock:
            before = self._signs.get(writer_id)
            if before is not None and before[1] > last_ms:
                last_ms = before[1]
            self._signs[writer_id] = heard_ms, last_ms
            self._active[run_id] = time.monotonic()

    def thrown_away(self, run_id: int) -> None:
        """Note a run that its writers are to send no more of, before the next look."""
        self.deleted |= {run_id}

    def forget(self, run_ids: Iterable[int]) -> None:
        """Runs that are gone for good."""
        with self._lock:
            for run_id in run_ids:
                self._active.pop(run_id, None)

    def flush(self) -> None:
        """Tell what was heard, and ask what is wanted, now."""
        since_s = time.monotonic() - _ASKED_FOR_S
        with self._lock:
            signs, self._signs = self._signs, {}
            self._active = {run_id: at_s for run_id, at_s in self._active.items() if at_s >= since_s}
            active = list(self._active)
        try:
            now_ms = self._clock()
            self._catalogue.writers.heard(
                [
                    WriterHeartbeat(writer_id, min(heard_ms, now_ms), last_ms)
                    for writer_id, (heard_ms, last_ms) in signs.items()
                ]
            )
        except BaseException:
            with self._lock:
                self._signs = {**signs, **self._signs}
            raise
        self.stopped = frozenset(self._catalogue.runs.stops_requested(active))
        self.deleted = frozenset(self._catalogue.runs.deleted(active))

    def close(self) -> None:
        """Tell what is left to tell, and end."""
        self.thread.close()

    def _turn(self) -> bool:
        ends = self.thread.closing.is_set()
        if isinstance(self._clock, Clock):
            self._follow(self._clock)
        if self._signs or self._active:
            self.flush()
        return not ends

    def _follow(self, clock: Clock) -> None:
        """Move what was heard along with a clock that was set, and go by that from then on."""
        by_ms = clock.jumped_ms()
        if by_ms:
            self.flush()
            self._catalogue.writers.move_heard(clock(), by_ms)
            clock.follow(by_ms)
            log.warning("the clock was set %s by %.1f s", "ahead" if by_ms > 0 else "back", abs(by_ms) / 1000)
