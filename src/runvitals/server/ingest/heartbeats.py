"""Heartbeats of writers, and the users' requests to stop or delete runs.

Exchanged with the metadata store once a second.

Every request is a sign of life of its writer. Committing each one would cost more than committing its
samples. A delay of a second does not affect the state of a run, which changes after ten silent seconds at the
earliest.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping

from runvitals.server.clock import Clock
from runvitals.server.ingest.envelope import RequestedCommand
from runvitals.server.ingest.usage_marks import UsageCollector
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.writers import WriterHeartbeat
from runvitals.server.usage.days import Calendar
from runvitals.store.supervised_thread import SupervisedThread

EVERY_S = 1.0
_MAX_PAUSE_S = 5.0
_ACTIVE_S = 300.0
"""Stop requests are looked up for runs that were heard of within this time."""

log = logging.getLogger("runvitals.server")


class Heartbeats:
    """A thread that writes heartbeats and reads stop requests.

    Args:
        clock: the time now, ms UTC. If a `Clock` was set, the recorded heartbeats are shifted with it.
        usage: what ingest notes about usage, which is written with the heartbeats.

    Attributes:
        stop_requested: ids of the active runs that a user wants to stop.
        deleted: ids of the active runs that are in the trash.
        commands: what hosts of active runs are asked to run, by run.
    """

    def __init__(
        self, metadata_store: MetadataStore, clock: Callable[[], int], usage: UsageCollector | None = None
    ) -> None:
        self._metadata_store = metadata_store
        self._clock = clock
        self._usage = usage or UsageCollector(lambda: Calendar("UTC"))
        self.stop_requested: frozenset[int] = frozenset()
        self.deleted: frozenset[int] = frozenset()
        self.commands: Mapping[int, tuple[RequestedCommand, ...]] = {}
        self._pending: dict[int, tuple[int, int, float | None]] = {}
        self._active: dict[int, float] = {}
        self._lock = threading.Lock()
        self.thread = SupervisedThread(
            "heartbeats", self._turn, every_s=EVERY_S, longest_pause_s=_MAX_PAUSE_S
        )
        # The clock may have been set back since the last server ended.
        metadata_store.writers.cap_heartbeats(clock())
        metadata_store.alerts.outbox.cap_waiting(clock())
        self.thread.start()

    def record(
        self, run_id: int, writer_id: int, heard_ms: int, last_ms: int, interval_s: float | None = None
    ) -> None:
        """Note that a writer sent an envelope whose newest record has time `last_ms`.

        Args:
            interval_s: the longest normal time until its next one; None: as before.
        """
        with self._lock:
            before = self._pending.get(writer_id)
            if before is not None:
                last_ms = max(last_ms, before[1])
                interval_s = before[2] if interval_s is None else interval_s
            self._pending[writer_id] = heard_ms, last_ms, interval_s
            self._active[run_id] = time.monotonic()

    def add_deleted(self, run_id: int) -> None:
        """Add a run to `deleted` without waiting for the next turn."""
        self.deleted |= {run_id}

    def remove_deleted(self, run_id: int) -> None:
        """The opposite, for a run that was restored."""
        self.deleted -= {run_id}

    def forget(self, run_ids: Iterable[int]) -> None:
        """Drop runs that were deleted permanently."""
        with self._lock:
            for run_id in run_ids:
                self._active.pop(run_id, None)

    def flush(self) -> None:
        """Write the pending heartbeats, and read which runs to stop, now."""
        since_s = time.monotonic() - _ACTIVE_S
        with self._lock:
            pending, self._pending = self._pending, {}
            self._active = {run_id: at_s for run_id, at_s in self._active.items() if at_s >= since_s}
            active = list(self._active)
        now_ms = self._clock()
        usage = self._usage.take(now_ms, at_once=self.thread.closing.is_set())
        try:
            self._metadata_store.writers.record_heartbeats(
                [
                    WriterHeartbeat(writer_id, min(heard_ms, now_ms), last_ms, interval_s)
                    for writer_id, (heard_ms, last_ms, interval_s) in pending.items()
                ],
                usage,
            )
        except BaseException:
            with self._lock:
                self._pending = {**pending, **self._pending}
            self._usage.put_back(usage)
            raise
        self.stop_requested = frozenset(self._metadata_store.runs.stops_requested(active))
        self.deleted = frozenset(self._metadata_store.runs.in_trash(active))
        self.commands = {
            run_id: tuple(RequestedCommand(*command) for command in commands)
            for run_id, commands in self._metadata_store.alerts.outbox.host_commands().items()
        }

    def close(self) -> None:
        """Write the pending heartbeats and end the thread."""
        self.thread.close()

    def _turn(self) -> bool:
        closing = self.thread.closing.is_set()
        if isinstance(self._clock, Clock):
            self._follow(self._clock)
        if self._pending or self._active or self._usage.has_requests:
            self.flush()
        return not closing

    def _follow(self, clock: Clock) -> None:
        """If the clock was set, shift the recorded heartbeats by the same amount and use the new time."""
        by_ms = clock.jumped_ms()
        if by_ms:
            self.flush()
            self._metadata_store.writers.shift_heartbeats(clock(), by_ms)
            clock.follow(by_ms)
            self._metadata_store.alerts.outbox.cap_waiting(clock())
            direction = "forward" if by_ms > 0 else "back"
            log.warning("the system clock was set %s by %.1f s", direction, abs(by_ms) / 1000)
