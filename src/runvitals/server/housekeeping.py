"""What a server does beside answering: drop samples that are old or too many, and empty the trash.

Only samples go by age and quota. A run whose samples have gone is listed, searched and shown as before, with
its facts, summary, events and output.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from types import TracebackType

from runvitals.store.metadata import MetadataStore
from runvitals.store.samples.contract import SampleStore
from runvitals.store.supervised_thread import SupervisedThread

_MINUTE_MS = 60_000
_LOOK_MS = 5 * _MINUTE_MS
_OLD_MS = 60 * _MINUTE_MS
_STATISTICS_MS = 24 * 60 * _MINUTE_MS
_RUNS_AT_ONCE = 100

log = logging.getLogger("runvitals.server")


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """What is kept; None: without limit.

    Args:
        samples_ms: samples, for so long.
        size_bytes: as much of them as takes so much of the disk, the newest.
        trash_ms: how long runs stay in the trash.
    """

    samples_ms: int | None = None
    size_bytes: int | None = None
    trash_ms: int | None = 30 * 24 * 60 * _MINUTE_MS


@dataclass(slots=True)
class HousekeepingTotals:
    """What housekeeping has done since the server began.

    Args:
        bytes, samples: that were dropped; of those that are in their final form.
        runs: removed from the trash for good.
        done_ms: when it was last done in good order.
    """

    bytes: int = 0
    samples: int = 0
    runs: int = 0
    done_ms: int = 0


class Housekeeping:
    """A supervised thread that looks every five minutes, from the start on; `with` ends it.

    Args:
        forget: called with the ids of runs that were removed for good.
        clock: the time now, ms UTC.

    Attributes:
        kept: what was done so far.
    """

    def __init__(
        self,
        store: SampleStore,
        catalogue: MetadataStore,
        keeping: RetentionPolicy,
        forget: Callable[[Collection[int]], None],
        clock: Callable[[], int],
    ) -> None:
        self._store = store
        self._catalogue = catalogue
        self._keeping = keeping
        self._forget = forget
        self._clock = clock
        self.kept = HousekeepingTotals()
        self._old_due_ms = self._statistics_due_ms = 0
        self.thread = SupervisedThread("housekeeping", self._turn, every_s=_LOOK_MS / 1000)

    def __enter__(self) -> Housekeeping:
        self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.thread.close()

    def look(self) -> None:
        """Do what is to be done now.

        Raises:
            Exception: whatever kept it from that; it is done at another look.
        """
        now_ms = self._clock()
        self._do(now_ms)
        self.kept.done_ms = now_ms

    def _turn(self) -> bool:
        if self.thread.closing.is_set():
            return False
        self.look()
        return True

    def _do(self, now_ms: int) -> None:
        if now_ms >= self._old_due_ms:
            self._empty_trash(now_ms)
            if self._keeping.samples_ms is not None:
                oldest_ms = now_ms - self._keeping.samples_ms
                self._drop("samples beyond their age", lambda: self._store.drop_before(oldest_ms))
            self._old_due_ms = now_ms + _OLD_MS
        most = self._keeping.size_bytes
        if most is not None and self._store.stats().size_bytes > most:
            self._drop("samples beyond the size", lambda: self._store.shrink_to(most))
        if now_ms >= self._statistics_due_ms:
            self._catalogue.refresh_statistics()
            self._statistics_due_ms = now_ms + _STATISTICS_MS

    def _drop(self, what: str, work: Callable[[], None]) -> None:
        before = self._store.stats()
        work()
        after = self._store.stats()
        samples = max(0, before.samples - after.samples)
        if not samples:
            return
        freed = max(0, before.size_bytes - after.size_bytes)
        fields = {"samples": samples, "bytes": freed, "left_bytes": after.size_bytes}
        log.info("dropped %s", what, extra={"fields": fields})
        self.kept.samples += samples
        self.kept.bytes += freed

    def _empty_trash(self, now_ms: int) -> None:
        if self._keeping.trash_ms is None:
            return
        gone = self._catalogue.runs.trashed_before(now_ms - self._keeping.trash_ms)
        for first in range(0, len(gone), _RUNS_AT_ONCE):
            runs = gone[first : first + _RUNS_AT_ONCE]
            writers = self._catalogue.writers.of_runs(runs).values()
            self._store.delete(sorted({one.lane_id for some in writers for one in some}))
            self._catalogue.runs.purge(runs)
            self._forget(runs)
            self.kept.runs += len(runs)
        if gone:
            log.info("removed runs from the trash", extra={"fields": {"runs": len(gone)}})
