"""`JudgeThread`: judges the runs of a shared server, while they go on and when they have ended."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from runvitals.findings.finding import RULES_VERSION
from runvitals.findings.pace import Urgency
from runvitals.model.durations import HOUR_MS, MINUTE_MS
from runvitals.model.errors import UnknownRun
from runvitals.server.clock import Due
from runvitals.server.findings.kept_findings import KeptFindings
from runvitals.server.findings.storage.results import DueJudgement
from runvitals.server.findings.watched_runs import WatchedRuns
from runvitals.server.library.stored.run import StoredRun
from runvitals.server.metadata_store import MetadataStore
from runvitals.store.errors import MetadataStoreUnavailable
from runvitals.store.samples.interface import SampleStore
from runvitals.store.supervised_thread import SupervisedThread

EVERY_S: Final = 5.0
LOOK_MS: Final = 30_000
"""The newest values of runs that go on are looked at so often, or less often if `LOOK_LOAD` asks for it."""
ENDED_MS: Final = 15_000
"""Runs that have ended are searched so often."""
LOOK_LOAD: Final = 0.004
QUIET_LOAD: Final = 0.005
"""Of a core, for all runs in which nothing changes: with many, each is judged more seldom."""
CHANGED_LOAD: Final = 0.05
"""Of a core, for runs in which something has changed, and for first judgements."""
ENDED_LOAD: Final = 0.1
"""Of a core, for runs that have ended, also after the rules have changed."""
_SAVED_S: Final = 60.0
"""What a load allows is saved up for so long."""
_MAX_LANES: Final = 100_000
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


class _Allowance:
    """CPU seconds that may be spent: a share of a core."""

    def __init__(self, load: float) -> None:
        self._load = load
        self._filled_ms: int | None = None
        self.left_s = 0.0

    def fill(self, now_ms: int) -> None:
        """Add what the time since the last call allows."""
        since_s = _SAVED_S if self._filled_ms is None else max(now_ms - self._filled_ms, 0) / 1000
        self.left_s = min(self.left_s + self._load * since_s, self._load * _SAVED_S)
        self._filled_ms = now_ms


class JudgeThread:
    """A supervised thread that judges runs.

    Runs that go on are watched: it looks at their newest values each half minute, in the store, so it does
    not matter which server they send to. Those in which something changed are judged at once, the others
    seldom. Runs that have ended are found by what arrived of them; at the start, and every hour, among all.
    What is judged is in the metadata store, so a server that starts, or begins to lead, goes on with what is
    missing. `with` ends it.

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
        self._watched = WatchedRuns(store, metadata_store)
        self._look_due, self._ended_due, self._full_check = Due(), Due(), Due()
        self._heard_ms = 0
        self._quiet, self._urgent = _Allowance(QUIET_LOAD), _Allowance(CHANGED_LOAD)
        self._left: set[int] = set()
        self._went_on: frozenset[int] = frozenset()
        self.failures: dict[int, str] = {}
        self.thread = SupervisedThread("findings", self._turn, every_s=EVERY_S)

    def __enter__(self) -> JudgeThread:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.thread.close()

    def _turn(self) -> bool:
        if self.thread.closing.is_set():
            return False
        if self._leads():
            self.judge_due()
        else:
            # All runs are looked at when this server begins to lead.
            for each in (self._look_due, self._ended_due, self._full_check):
                each.at_once()
            self._watched.forget()
        return True

    def judge_due(self) -> None:
        """Judge what is due, while there is time."""
        now_ms = self._clock()
        if self._look_due.at(now_ms):
            self._look(now_ms)
        self._judge_running(now_ms)
        if self._ended_due.at(now_ms) or self._left:
            self._judge_ended(now_ms)

    def _look(self, now_ms: int) -> None:
        """Look at the newest values of the runs that go on."""
        began_s = self._cpu_clock()
        self._went_on = self._watched.ids
        self._watched.look(self._metadata_store.findings.running(RULES_VERSION, now_ms, _MAX_LANES), now_ms)
        self._look_due.wait(now_ms, max(LOOK_MS, int(1000 * (self._cpu_clock() - began_s) / LOOK_LOAD)))

    def _judge_running(self, now_ms: int) -> None:
        for allowance in (self._quiet, self._urgent):
            allowance.fill(now_ms)
        for run in self._watched.due(now_ms):
            allowance = self._quiet if run.urgency is Urgency.QUIET else self._urgent
            if allowance.left_s > 0 and not self._has_failed(run.run_id, now_ms):
                cost_s = self._judge(run.run_id, run.uid, now_ms)
                self._watched.judged(run.run_id, now_ms, cost_s)
                allowance.left_s -= cost_s
            if self.thread.closing.is_set():
                return

    def _judge_ended(self, now_ms: int) -> None:
        table = self._metadata_store.findings
        full = self._full_check.at(now_ms)
        among = (
            None
            if full
            else table.heard_since(self._heard_ms) | self._watched.ids | self._went_on | self._left
        )
        due = table.due(RULES_VERSION, now_ms, _AT_ONCE, among, only_ended=True)
        left_s = ENDED_LOAD * EVERY_S
        self._left = set()
        for run in due:
            if left_s <= 0 or self.thread.closing.is_set() or not self._is_due(run, now_ms):
                self._left.add(run.run_id)
            else:
                left_s -= self._judge(run.run_id, run.uid, now_ms)
        self._heard_ms = now_ms - MINUTE_MS
        self._ended_due.wait(now_ms, ENDED_MS)
        if full and not self._left and len(due) < _AT_ONCE:
            self._full_check.wait(now_ms, _FULL_CHECK_MS)

    def _is_due(self, run: DueJudgement, now_ms: int) -> bool:
        judged = self._judged.get(run.run_id)
        if judged is None:
            return True
        waits = now_ms - judged.time_ms < 1000 * judged.cost_s / ENDED_LOAD
        return not waits and not self._has_failed(run.run_id, now_ms)

    def _has_failed(self, run_id: int, now_ms: int) -> bool:
        judged = self._judged.get(run_id)
        return judged is not None and judged.failed and now_ms - judged.time_ms < _RETRY_MS

    def _judge(self, run_id: int, uid: str, now_ms: int) -> float:
        """Judge a run, and return the CPU seconds that it took. A run that cannot be judged stops no other.

        Raises:
            MetadataStoreUnavailable: the metadata store is away.
        """
        began_s = self._cpu_clock()
        failed = False
        view = StoredRun(uid, run_id, self._store, self._metadata_store)
        try:
            view.refresh()
            self._findings.judge(view, now_ms)
            self.failures.pop(run_id, None)
        except UnknownRun:
            pass  # moved to the trash, or deleted, a moment ago
        except MetadataStoreUnavailable:
            raise  # no run can be judged: the thread reports it and tries again
        except Exception as error:  # noqa: BLE001 - logged and kept with the run
            failed = True
            self._note_failure(run_id, uid, error, now_ms)
        cost_s = self._cpu_clock() - began_s
        self._judged.pop(run_id, None)
        self._judged[run_id] = _Judged(now_ms, cost_s, failed)
        if len(self._judged) > _MAX_REMEMBERED:
            self._judged.pop(next(iter(self._judged)))
        return cost_s

    def _note_failure(self, run_id: int, uid: str, error: Exception, now_ms: int) -> None:
        log.exception("run %s could not be judged", uid)
        self.failures[run_id] = repr(error)
        if len(self.failures) > _AT_ONCE:
            self.failures.pop(next(iter(self.failures)))
        self._metadata_store.findings.note_failure(run_id, repr(error), RULES_VERSION, now_ms)
