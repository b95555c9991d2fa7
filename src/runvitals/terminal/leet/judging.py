"""Judges the run of a screen beside it, at times that cost little."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from runvitals.findings.finding import Findings
from runvitals.terminal.leet.filtered_screen import READ_ERRORS
from runvitals.terminal.leet.run_data import RunData

JUDGE_EVERY_S = 30.0
"""The findings about a run that goes on are not read more often."""
COST_SHARE = 200.0
"""Nor before so many times as long has passed as that took of a processor."""


class JudgingTimes:
    """When a run is judged: at first, at its end, and from time to time while it goes on."""

    def __init__(self) -> None:
        self._next_s = 0.0
        self._judged_end_ms = -1.0

    def is_due(self, now_s: float, end_ms: float) -> bool:
        """Return whether there is something new and the last judgement is long enough ago.

        Args:
            end_ms: the time of the newest record.
        """
        return end_ms != self._judged_end_ms and now_s >= self._next_s

    def judged(self, now_s: float, cpu_s: float, end_ms: float) -> None:
        """Take note of a judgement, and what it took."""
        self._judged_end_ms = end_ms
        self._next_s = now_s + max(JUDGE_EVERY_S, COST_SHARE * cpu_s)


class Judging:
    """Judges a run in a thread, one judgement at a time.

    Args:
        data: the run.
        report: shows why it cannot be judged; None: it can.
        show: shows the findings, as of a time in ms UTC.
    """

    def __init__(
        self,
        data: RunData,
        report: Callable[[str, Exception | None], None],
        show: Callable[[Findings, float], None],
    ) -> None:
        self._data, self._report, self._show = data, report, show
        self._times = JudgingTimes()
        self._is_busy = False

    def begin(self) -> bool:
        """Return whether the run is to be judged now, and take note that it is."""
        is_due = not self._is_busy and self._times.is_due(time.monotonic(), self._data.end_ms())
        self._is_busy |= is_due
        return is_due

    async def judge(self) -> None:
        """Judge the run, and show the findings."""
        end_ms, cpu_s = self._data.end_ms(), 0.0
        try:
            findings, cpu_s = await asyncio.to_thread(_judged, self._data)
        except READ_ERRORS as error:
            self._report("the findings", error)
        else:
            self._report("the findings", None)
            self._show(findings, end_ms)
        finally:
            self._is_busy = False
            self._times.judged(time.monotonic(), cpu_s, end_ms)


def _judged(data: RunData) -> tuple[Findings, float]:
    """Judge a run; return its findings and the CPU seconds that they took."""
    began = time.thread_time()
    return data.source.findings(), time.thread_time() - began
