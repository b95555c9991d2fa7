"""The verdicts about runs of this machine, judged from their journals and kept in memory.

A journal must be read completely for them, so a request judges as many runs as it has time for. Runs that are
left out have no verdict in its response, and are judged by the following requests.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from runvitals.findings.judge import judge
from runvitals.findings.lost_hours import lost_hours
from runvitals.model.run import Run
from runvitals.model.run_verdict import RunVerdict
from runvitals.model.state import RUNNING
from runvitals.readers.journals.run_handle import open_run

TIME_S = 3.0
"""How long one request judges. Another run is begun until then, so it may take longer."""
FRESH_MS, MAX_LOAD = 60_000, 0.01
"""A run that goes on is judged again after this time, or later if that would take more of a core."""
_MAX_KEPT = 10_000


@dataclass(frozen=True, slots=True)
class _JudgedJournal:
    """A verdict as of the time of the newest record. `verdict`: None if the journal is gone.

    `next_ms`: when the run is judged again, if it goes on.
    """

    last_ms: int
    next_ms: float
    verdict: RunVerdict | None


class JournalVerdicts:
    """The verdicts about runs, by run id.

    Args:
        directory: the data folder.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._judged: dict[str, _JudgedJournal] = {}

    def read(self, runs: Sequence[Run], now_ms: int) -> int:
        """Judge what is missing, while there is time; return how many runs are still missing.

        Call it in one thread at a time.
        """
        until_s = time.monotonic() + TIME_S
        missing = [run for run in runs if not self._is_fresh(run, now_ms)]
        for done, run in enumerate(missing):
            if time.monotonic() > until_s:
                return len(missing) - done
            self._judge(run, now_ms)
        return 0

    def add_to(self, runs: Iterable[Run]) -> list[Run]:
        """Return the runs with the verdicts that are known."""
        judged = ((run, self._judged.get(run.id)) for run in runs)
        return [run if journal is None else replace(run, verdict=journal.verdict) for run, journal in judged]

    def _is_fresh(self, run: Run, now_ms: int) -> bool:
        journal = self._judged.get(run.id)
        if journal is None:
            return False
        if run.state == RUNNING:
            return now_ms < journal.next_ms
        return journal.last_ms == _last_ms(run)

    def _judge(self, run: Run, now_ms: int) -> None:
        began_s = time.thread_time()
        try:
            observed = open_run(run.id, self._directory).observe()
        except FileNotFoundError:  # deleted a moment ago
            verdict = None
        else:
            findings = judge(observed)
            hours = lost_hours(findings.findings, observed.now_ms, observed.device_hours or None)
            verdict = findings.about_run(sum(hours), now_ms)
        self._judged.pop(run.id, None)
        rest_ms = max(FRESH_MS, 1000 * (time.thread_time() - began_s) / MAX_LOAD)
        self._judged[run.id] = _JudgedJournal(_last_ms(run), now_ms + rest_ms, verdict)
        while len(self._judged) > _MAX_KEPT:
            del self._judged[next(iter(self._judged))]


def _last_ms(run: Run) -> int:
    return run.started_ms + run.duration_ms if run.ended_ms is None else run.ended_ms
