"""The findings about the runs of a shared server: read from what is kept, or judged and kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from runvitals.findings.finding import RULES_VERSION, Findings
from runvitals.findings.observed_run import ObservedRun
from runvitals.model.durations import MINUTE_MS
from runvitals.server.access.control import AccessControl
from runvitals.server.access.requester import Requester
from runvitals.server.alerts.finding_watch import LATE_MS
from runvitals.server.events.finding_changes import (
    FindingChange,
    FindingClosed,
    FindingListener,
    FindingOpened,
)
from runvitals.server.findings.kept_result import JudgedRun, KeptResult, continue_result
from runvitals.server.findings.run_findings import observe_view
from runvitals.server.library.run_library import RunView
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.events import StoredEvent
from runvitals.server.usage.run_prices import may_see_prices, run_prices

FRESH_MS = 30_000
"""The findings about a run that goes on are judged again on request after this time."""
EVENT = "finding"
"""The name of the events of runs about findings."""


class KeptFindings:
    """Judges runs and keeps the results; a `FindingSource`. Thread-safe.

    Args:
        clock: the time now, ms UTC.
        listeners: hear of changes in the findings about runs that go on, or have just ended, in the
            transaction that keeps them.
        note_change: called with the number of a run about which something new was kept.
    """

    def __init__(
        self,
        metadata_store: MetadataStore,
        clock: Callable[[], int],
        listeners: Sequence[FindingListener] = (),
        note_change: Callable[[int], None] = lambda run_id: None,
    ) -> None:
        self._store = metadata_store
        self._clock = clock
        self._listeners = tuple(listeners)
        self._note_change = note_change

    def findings(self, view: RunView, now_ms: int) -> Findings:
        """Return the findings about a run: what is kept, if it is fresh."""
        number = view.number
        assert number is not None
        kept = self._store.findings.of_run(number)
        if kept is not None and self._is_fresh(kept, now_ms):
            return kept.findings
        return self.judge(view, now_ms).findings

    def price(self, view: RunView, now_ms: int, access: AccessControl, requester: Requester) -> float | None:
        """Return the organisation's price of a run's device-hour; None if it has none or may not be seen."""
        number = view.number
        assert number is not None
        if not may_see_prices(access, requester, view.run(now_ms).entity):
            return None
        return run_prices(self._store, {number}).get(number)

    def _is_fresh(self, kept: KeptResult, now_ms: int) -> bool:
        if kept.error is not None or kept.rules_version < RULES_VERSION:
            return False
        if not kept.is_final and 0 <= now_ms - kept.judged_ms < FRESH_MS:
            return True
        return not self._store.findings.due(RULES_VERSION, now_ms, 1, [kept.run_id])

    def judge(self, view: RunView, now_ms: int) -> KeptResult:
        """Judge a run by all its samples and keep the result."""
        from runvitals.findings.judge import judge  # the rules: loaded for the first run

        number = view.number
        assert number is not None
        observed = observe_view(view, now_ms)
        return self.keep(judged_run(number, observed, judge(observed), now_ms))

    def keep(self, judged: JudgedRun) -> KeptResult:
        """Keep the findings about a run, with the events of what has changed.

        Does nothing if later findings are kept already, and keeps earlier ones if samples they were judged by
        have been dropped since.
        """

        def work() -> tuple[KeptResult, bool]:
            exists = self._store.findings.lock(judged.run_id)
            before = self._store.findings.of_run(judged.run_id)
            if before is not None and before.error is None and _is_later(before, judged):
                return before, False
            result, changes = continue_result(before, judged)
            if before is not None and before.up_to_ms and _lacks_samples(judged, before):
                result, changes = _confirmed(before, judged), []
            if exists:
                self._store.findings.put([result])
                if self._clock() - judged.up_to_ms <= LATE_MS:
                    self._store.events.add([_event(change) for change in changes if _is_event(change)])
                    for hear in self._listeners:
                        hear(changes)
            return result, bool(changes)

        result, has_changed = self._store.in_one_transaction(work)
        if has_changed:
            self._note_change(judged.run_id)
        return result


def judged_run(run_id: int, observed: ObservedRun, findings: Findings, judged_ms: int) -> JudgedRun:
    """Return the findings about a run with what they were judged by."""
    first_ms, last_ms = _sampled(observed)
    return JudgedRun(
        run_id=run_id,
        rules_version=RULES_VERSION,
        judged_ms=judged_ms,
        from_ms=first_ms,
        up_to_ms=min(last_ms, observed.now_ms),
        is_final=observed.ended_ms is not None,
        findings=findings,
        device_hours=observed.device_hours,
    )


def _sampled(observed: ObservedRun) -> tuple[int, int]:
    """Return the begin of the first and the end of the last window with samples; the end twice without."""
    samples = sum((host.columns.samples for host in observed.hosts), np.zeros(observed.windows.count))
    filled = np.flatnonzero(samples)
    if not len(filled):
        return observed.now_ms, observed.now_ms
    edges = observed.windows.edges_ms
    return int(edges[filled[0]]), int(edges[filled[-1] + 1])


def _confirmed(before: KeptResult, judged: JudgedRun) -> KeptResult:
    """Return an earlier result as that of a judgement which could not see as much."""
    return replace(
        before,
        rules_version=judged.rules_version,
        judged_ms=judged.judged_ms,
        is_final=judged.is_final,
        error=None,
    )


def _is_later(before: KeptResult, judged: JudgedRun) -> bool:
    return (before.rules_version, before.judged_ms) > (judged.rules_version, judged.judged_ms)


def _lacks_samples(judged: JudgedRun, before: KeptResult) -> bool:
    """Whether samples that an earlier judgement saw are gone: retention has dropped them.

    The first window begins at most a window earlier or later than before.
    """
    return judged.is_final and judged.from_ms - before.from_ms > max(
        MINUTE_MS, (before.up_to_ms - before.from_ms) // 100
    )


def _is_event(change: FindingChange) -> bool:
    """Whether a change is an event of the run: information is not."""
    return isinstance(change, FindingOpened | FindingClosed) and change.finding.severity != "info"


def _event(change: FindingChange) -> StoredEvent:
    finding = change.finding
    opened = isinstance(change, FindingOpened)
    level = "info" if not opened else "error" if finding.severity == "critical" else "warning"
    return StoredEvent(
        change.run_id,
        change.up_to_ms,
        EVENT,
        level,
        finding.text if opened else f"Over: {finding.text}",
        {
            "finding": finding.id,
            "number": change.number,
            "state": "open" if opened else "closed",
            "severity": finding.severity,
            "confidence": finding.confidence,
            "from_ms": finding.from_ms,
            "to_ms": finding.to_ms,
            "device_hours": round(finding.device_hours, 3),
        },
    )
