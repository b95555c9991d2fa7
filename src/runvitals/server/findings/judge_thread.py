"""`JudgeThread`: judges the runs of a shared server, while they go on and when they have ended."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Final

from runvitals.findings.rules import VERSION
from runvitals.model.durations import HOUR_MS, MINUTE_MS
from runvitals.model.errors import UnknownRun
from runvitals.server.findings.kept_findings import KeptFindings
from runvitals.server.findings.storage.results import DueJudgement
from runvitals.server.library.stored.run import StoredRun
from runvitals.server.metadata_store import MetadataStore
from runvitals.store.errors import MetadataStoreUnavailable
from runvitals.store.samples.interface import SampleStore
from runvitals.store.supervised_thread import SupervisedThread

EVERY_S: Final = 5.0
RUNNING_LOAD: Final = 0.01
"""Of a core, for all runs that go on together: with many, each is judged more seldom."""
ENDED_LOAD: Final = 0.1
"""Of a core, for runs that have ended, also after the rules have changed."""
LEAST_MS: Final = MINUTE_MS
"""A run that goes on is not judged more often."""
_AT_ONCE: Final = 500
_FULL_CHECK_MS: Final = HOUR_MS
_RETRY_MS: Final = HOUR_MS
"""A run that could not be judged is tried again after this time, and when the server starts."""
_MAX_REMEMBERED: Final = 10_000

log = logging.getLogger("runvitals.server")


@dataclass(frozen=True, slots=True)
class _Judged:
    """When a run was last judged here, and the CPU time that it took."""

    time_ms: int
    cost_s: float
    failed: bool = False


class JudgeThread:
    """A supervised thread that judges runs.

    It looks every five seconds at runs of which something arrived; at the start, and every hour, at all
    others. What is judged is in the metadata store, so a server that starts, or begins to lead, goes on with
    what is missing. `with` ends it.

    Args:
        clock: the time now, ms UTC.
        cpu_clock: CPU seconds of this thread.
        leads: whether this server does it; another one does otherwise.

    Attributes:
        failures: why the last runs that could not be judged were not, by number.
    """

    def __init__(
        self,
        store: SampleStore,
        metadata_store: MetadataStore,
        findings: KeptFindings,
        clock: Callable[[], int],
        cpu_clock: Callable[[], float] = time.thread_time,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self._store = store
        self._metadata_store = metadata_store
        self._findings = findings
        self._clock = clock
        self._cpu_clock = cpu_clock
        self._leads = leads
        self._judged: dict[int, _Judged] = {}
        self._full_check_ms = self._heard_ms = 0
        self._followed: set[int] = set()
        self.failures: dict[int, str] = {}
        self.thread = SupervisedThread("findings", self._turn, every_s=EVERY_S)

    def __enter__(self) -> JudgeThread:
        self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.thread.close()

    def _turn(self) -> bool:
        if self.thread.closing.is_set():
            return False
        if self._leads():
            self.judge_due()
        else:
            self._full_check_ms = 0  # all runs are looked at when this server begins to lead
        return True

    def judge_due(self) -> None:
        """Judge what is due, while there is time."""
        now_ms = self._clock()
        table = self._metadata_store.findings
        full = now_ms >= self._full_check_ms
        heard = table.heard_since(self._heard_ms)
        among = None if full else heard | self._followed
        due = table.due(VERSION, now_ms, _AT_ONCE, among)
        left = self._judge_some(due, now_ms)
        self._heard_ms = now_ms - MINUTE_MS
        # What is left, and runs that go on, whose end is noticed although nothing more arrives.
        self._followed = left | {run.run_id for run in due if run.is_running}
        if full and not left and len(due) < _AT_ONCE:
            self._full_check_ms = now_ms + _FULL_CHECK_MS

    def _judge_some(self, due: Sequence[DueJudgement], now_ms: int) -> set[int]:
        """Judge runs while there is time, and return the numbers of those that are left."""
        running = sum(run.is_running for run in due)
        left_s = ENDED_LOAD * EVERY_S
        left: set[int] = set()
        for run in due:
            if left_s <= 0 or self.thread.closing.is_set() or not self._is_due(run, running, now_ms):
                left.add(run.run_id)
                continue
            left_s -= self._judge(run, now_ms)
        return left

    def _is_due(self, run: DueJudgement, running: int, now_ms: int) -> bool:
        judged = self._judged.get(run.run_id)
        if judged is not None and judged.failed and now_ms - judged.time_ms < _RETRY_MS:
            return False
        if not run.is_running:
            return judged is None or now_ms - judged.time_ms >= 1000 * judged.cost_s / ENDED_LOAD
        cost_s = 0.0 if judged is None else judged.cost_s
        waited_ms = now_ms - max(run.judged_ms, 0 if judged is None else judged.time_ms)
        return waited_ms >= max(LEAST_MS, 1000 * cost_s * running / RUNNING_LOAD)

    def _judge(self, run: DueJudgement, now_ms: int) -> float:
        """Judge a run, and return the CPU seconds that it took. A run that cannot be judged stops no other.

        Raises:
            MetadataStoreUnavailable: the metadata store is away.
        """
        began_s = self._cpu_clock()
        failed = False
        view = StoredRun(run.uid, run.run_id, self._store, self._metadata_store)
        try:
            view.refresh()
            self._findings.judge(view, now_ms)
            self.failures.pop(run.run_id, None)
        except UnknownRun:
            pass  # moved to the trash, or deleted, a moment ago
        except MetadataStoreUnavailable:
            raise  # no run can be judged: the thread reports it and tries again
        except Exception as error:  # noqa: BLE001 - logged and kept with the run
            failed = True
            self._note_failure(run, error, now_ms)
        cost_s = self._cpu_clock() - began_s
        self._judged.pop(run.run_id, None)
        self._judged[run.run_id] = _Judged(now_ms, cost_s, failed)
        if len(self._judged) > _MAX_REMEMBERED:
            self._judged.pop(next(iter(self._judged)))
        return cost_s

    def _note_failure(self, run: DueJudgement, error: Exception, now_ms: int) -> None:
        log.exception("run %s could not be judged", run.uid)
        self.failures[run.run_id] = repr(error)
        if len(self.failures) > _AT_ONCE:
            self.failures.pop(next(iter(self.failures)))
        self._metadata_store.findings.note_failure(run.run_id, repr(error), VERSION, now_ms)
