"""Retention: drop samples beyond their age or a total size, empty the trash, end what expires of accounts.

Note which runs of sweeps have ended.

Retention applies to samples only. A run without samples is still listed, searched and shown, with its facts,
summary, events and output.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass

from runvitals.model.durations import DAY_MS, HOUR_MS, MINUTE_MS
from runvitals.server.alerts.storage import firings
from runvitals.server.background.account_housekeeping import AccountHousekeeping
from runvitals.server.background.account_trash import AccountTrash
from runvitals.server.clock import Due
from runvitals.server.events import outbox, run_events
from runvitals.server.mail.mailer import Mailer
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.organisation.settings import with_defaults
from runvitals.server.sweeps.outcomes import note_all_ended
from runvitals.server.usage.days import LATEST_MS
from runvitals.store.samples.interface import SampleStore
from runvitals.store.supervised_thread import SupervisedThread

_INTERVAL_MS = 5 * MINUTE_MS
_AGE_CHECK_MS = HOUR_MS
_STATISTICS_MS = DAY_MS
_RUNS_PER_BATCH = 100

log = logging.getLogger("runvitals.server")


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """Limits on the data that a server keeps. None means no limit, if nothing else is said.

    Args:
        samples_ms: how long samples are kept.
        size_bytes: how much disk space samples may take; beyond it the oldest are dropped.
        trash_ms: how long runs stay in the trash; None: as long as the setting `trash_days` says.
    """

    samples_ms: int | None = None
    size_bytes: int | None = None
    trash_ms: int | None = None


@dataclass(slots=True)
class HousekeepingTotals:
    """Totals of housekeeping since the server started.

    Args:
        bytes, samples: dropped from month files.
        runs: removed from the trash for good.
        done_ms: when housekeeping last succeeded.
    """

    bytes: int = 0
    samples: int = 0
    runs: int = 0
    done_ms: int = 0


class Housekeeping:
    """A supervised thread that applies the retention policy at the start and every five minutes.

    `with` ends it.

    Args:
        forget: called with the ids of runs that were removed for good.
        clock: the time now, ms UTC.
        mailer: sends mail about accounts.
        collect_files: removes files that no run has any more, and returns how many.
        keep_usage: called before samples are dropped, with the time before which all may go: their usage is
            computed then.
        leads: whether this server does it; another one does otherwise.

    Attributes:
        totals: what was done so far.
    """

    def __init__(
        self,
        store: SampleStore,
        metadata_store: MetadataStore,
        policy: RetentionPolicy,
        forget: Callable[[Collection[int]], None],
        clock: Callable[[], int],
        mailer: Mailer,
        collect_files: Callable[[], int] = lambda: 0,
        keep_usage: Callable[[int], None] = lambda before_ms: None,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self._leads = leads
        self._keep_usage = keep_usage
        self._collect_files = collect_files
        self._store = store
        self._metadata_store = metadata_store
        self._policy = policy
        self._forget = forget
        self._accounts = AccountHousekeeping(metadata_store.accounts, mailer)
        self._account_trash = AccountTrash(metadata_store, self._remove_runs)
        self._clock = clock
        self.totals = HousekeepingTotals()
        self._age_check, self._statistics = Due(), Due()
        self.thread = SupervisedThread("housekeeping", self._run_unless_closing, every_s=_INTERVAL_MS / 1000)

    def __enter__(self) -> Housekeeping:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.thread.close()

    def run_once(self) -> None:
        """Do the work that is due; after any exception it is tried again at the next interval."""
        now_ms = self._clock()
        self._run_due(now_ms)
        self.totals.done_ms = now_ms

    def _run_unless_closing(self) -> bool:
        if self.thread.closing.is_set():
            return False
        if self._leads():
            self.run_once()
        return True

    def _run_due(self, now_ms: int) -> None:
        self._accounts.send_notices(now_ms)
        note_all_ended(self._metadata_store, now_ms)
        if self._age_check.at(now_ms):
            self._empty_trash(now_ms)
            self._accounts.remove_expired(now_ms)
            self._account_trash.empty(now_ms)
            self._metadata_store.alerts.outbox.purge(now_ms - outbox.KEPT_MS)
            self._metadata_store.alerts.events.forget(now_ms - run_events.KEPT_MS)
            self._metadata_store.alerts.firings.forget(now_ms - firings.KEPT_MS)
            self._metadata_store.alerts.automations.purge_firings(now_ms)
            if removed := self._collect_files():
                log.info("removed files that no run has any more", extra={"fields": {"files": removed}})
            if self._policy.samples_ms is not None:
                oldest_ms = now_ms - self._policy.samples_ms
                self._keep_usage(oldest_ms)
                self._drop("samples beyond the maximum age", lambda: self._store.drop_before(oldest_ms))
            self._age_check.wait(now_ms, _AGE_CHECK_MS)
        max_bytes = self._policy.size_bytes
        if max_bytes is not None and self._store.stats().size_bytes > max_bytes:
            self._keep_usage(now_ms - LATEST_MS)
            self._drop("the oldest samples beyond the maximum size", lambda: self._store.shrink_to(max_bytes))
        if self._statistics.at(now_ms):
            self._metadata_store.refresh_statistics()
            self._statistics.wait(now_ms, _STATISTICS_MS)

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
        self.totals.samples += samples
        self.totals.bytes += freed

    def _empty_trash(self, now_ms: int) -> None:
        trash_ms = self._policy.trash_ms
        if trash_ms is None:
            trash_ms = with_defaults(self._metadata_store.accounts.settings.all())["trash_days"] * DAY_MS
        expired = self._metadata_store.runs.trashed_before(now_ms - trash_ms)
        self._remove_runs(expired)
        if expired:
            log.info("removed runs from the trash", extra={"fields": {"runs": len(expired)}})

    def _remove_runs(self, expired: list[int]) -> None:
        """Remove runs that are in the trash for good, with their samples."""
        for first in range(0, len(expired), _RUNS_PER_BATCH):
            runs = expired[first : first + _RUNS_PER_BATCH]
            writers = self._metadata_store.writers.of_runs(runs).values()
            self._store.delete(sorted({writer.lane_id for of_run in writers for writer in of_run}))
            self._metadata_store.runs.purge(runs, self._clock())
            self._forget(runs)
            self.totals.runs += len(runs)
