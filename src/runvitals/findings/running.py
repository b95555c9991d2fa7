"""`RunningFindings`: judges a run while it goes on, from its samples as they arrive.

It keeps windows, not samples: its memory is bounded, and a sample costs some microseconds. A judgement gives
the same findings as `judge(observe(...))` of the whole run. When one is due it decides itself: soon after
something changed (the level of a series, the pace of the steps, a loss that is no number), seldom while
nothing does.

Example:
    >>> running = RunningFindings(started_ms)
    >>> running.add_host("node0", interval_s=1.0, machine=facts, ranks={0: 0})
    >>> running.add_row("node0", time_ms, {"gpu.0.gpu": 97.0, "cpu": 31.0})  # all keys of a sample
    >>> running.log(time_ms, step=10, data={"loss": 0.5})
    >>> changes = running.update(now_ms)                  # after each batch; None while no judgement is due
    >>> if changes:
    ...     for tracked in changes.opened: ...            # changes.changed, changes.closed
    >>> running.findings                                  # of the last judgement, or None
    >>> running.end(ended_ms, "finished")
    >>> running.update(ended_ms)                          # the last judgement; all findings close

Where samples are kept elsewhere and memory is dear, as in a server of many runs, use its parts instead:
`ChangeScreen` (a few numbers for each series: has anything changed?), `JudgementPace` (is a judgement due?),
a judgement from what is kept, and `FindingTracker` (what opened, changed, closed?):

    >>> if screen.look(host, time_ms, keys, means):       # each half minute or so, of each host
    ...     pace.change(time_ms)
    >>> if screen.look_at_steps(now_ms, new_steps_ms):
    ...     pace.change(now_ms)
    >>> if pace.is_due(now_ms):
    ...     began = time.thread_time()
    ...     changes = tracker.update(judge_view(view, now_ms), now_ms)
    ...     pace.judged(now_ms, time.thread_time() - began)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from runvitals.findings.changes import FindingChanges, FindingTracker
from runvitals.findings.finding import Findings
from runvitals.findings.host_windows import HostWindows
from runvitals.findings.judge import judge
from runvitals.findings.observation import DEFAULT_INTERVAL_S, extent_of, reads_logged
from runvitals.findings.observed_run import ObservedRun, host_of
from runvitals.findings.pace import JudgementPace
from runvitals.findings.running_values import RunningValues
from runvitals.findings.screen import ChangeScreen
from runvitals.findings.training import Mark, training_of
from runvitals.findings.windows import MIN_WIDTH_S, Floats, Integers, windows_of

LOOK_ROWS, LOOK_MS = 16, 45_000
"""Samples are reduced once there are so many, or so long ago was the first of them."""
MAX_MARKS = 10_000


@dataclass(slots=True)
class _RunningHost:
    windows: HostWindows
    interval_s: float
    machine: Mapping[str, Any] = field(default_factory=dict)
    ranks: Mapping[int, int] = field(default_factory=dict)
    looked_ms: int = 0


class RunningFindings:
    """The findings of a run that goes on.

    Args:
        started_ms: ms UTC.
        tracker: with the findings of before, to go on with.
        clock: CPU seconds; judgements that take long are made less often.
    """

    def __init__(
        self,
        started_ms: int,
        *,
        tracker: FindingTracker | None = None,
        price_per_device_hour: float | None = None,
        clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self.findings: Findings | None = None
        self.tracker = tracker or FindingTracker()
        self._started_ms, self._price, self._clock = started_ms, price_per_device_hour, clock
        self._ended_ms: int | None = None
        self._state = "running"
        self._out_of_memory: bool | None = None
        self._hosts: dict[str, _RunningHost] = {}
        self._logged, self._marks = RunningValues(), list[Mark]()
        self._screen, self._pace = ChangeScreen(), JudgementPace(started_ms)
        self._not_finite = False
        self._is_final = False

    def add_host(
        self,
        name: str,
        *,
        interval_s: float | None = None,
        machine: Mapping[str, Any] | None = None,
        ranks: Mapping[int, int] | None = None,
    ) -> None:
        """Take the facts about a host, before its samples or whenever they are known better."""
        host = self._host(name)
        host.interval_s = interval_s or host.interval_s
        host.machine = host.machine if machine is None else machine
        host.ranks = host.ranks if ranks is None else ranks

    def _host(self, name: str) -> _RunningHost:
        host = self._hosts.get(name)
        if host is None:
            host = self._hosts[name] = _RunningHost(HostWindows(name, 1000 * MIN_WIDTH_S), DEFAULT_INTERVAL_S)
        return host

    def add_row(self, host: str, time_ms: int, values: Mapping[str, Any]) -> None:
        """Take one sample of a host: all its values by key."""
        running = self._hosts.get(host) or self._host(host)
        windows = running.windows
        windows.add_row(time_ms, values)
        self._pace.sample()
        if windows.waiting >= LOOK_ROWS or time_ms - running.looked_ms >= LOOK_MS:
            self._look(host, running)

    def add_matrix(self, host: str, times_ms: Integers, keys: Sequence[str], values: Floats) -> None:
        """Take samples of a host: a row for each time, ascending, and a column for each key."""
        running = self._host(host)
        mean = running.windows.add_matrix(times_ms, keys, values)
        self._pace.sample(len(times_ms))
        if self._screen.look(host, int(times_ms[-1]), running.windows.keys, mean):
            self._pace.change(int(times_ms[-1]))

    def _look(self, name: str, host: _RunningHost) -> None:
        reduced = host.windows.reduce()
        if reduced is not None:
            host.looked_ms, mean = reduced
            if self._screen.look(name, host.looked_ms, host.windows.keys, mean):
                self._pace.change(host.looked_ms)

    def log(self, time_ms: int, step: int | None, data: Mapping[str, Any]) -> None:
        """Take a row that the training logged."""
        self._logged.add(time_ms, step, data)
        for name, value in data.items():
            if (
                not self._not_finite
                and isinstance(value, float)
                and not isfinite(value)
                and reads_logged(name)
            ):
                self._not_finite = True
                self._pace.change(time_ms)

    def mark(self, time_ms: int, text: str) -> None:
        """Take a mark of a callback."""
        if len(self._marks) < MAX_MARKS:
            self._marks.append(Mark(time_ms, text))

    def end(self, ended_ms: int, state: str, out_of_memory: bool | None = None) -> None:
        """Take note that the run has ended; the next `update` judges it a last time."""
        self._ended_ms, self._state, self._out_of_memory = ended_ms, state, out_of_memory

    def update(self, now_ms: int) -> FindingChanges | None:
        """Judge the run if that is due, and return what changed; None if it was not judged."""
        steps_ms, self._logged.fresh_steps_ms = self._logged.fresh_steps_ms, []
        if self._screen.look_at_steps(now_ms, steps_ms):
            self._pace.change(now_ms)
        ended = self._ended_ms is not None
        if self._is_final or not (ended or self._pace.is_due(now_ms)):
            return None
        began = self._clock()
        self.findings = self.judge(now_ms)
        self._pace.judged(now_ms, self._clock() - began)
        self._is_final = ended
        return self.tracker.update(self.findings, now_ms, ended=ended)

    def judge(self, now_ms: int) -> Findings:
        """Judge the run now."""
        return judge(self.observe(now_ms))

    def observe(self, now_ms: int) -> ObservedRun:
        """Return what rules see of the run."""
        for name, host in self._hosts.items():
            self._look(name, host)
        present = [host for host in self._hosts.values() if host.windows.first_ms is not None]
        first = [host.windows.first_ms for host in present if host.windows.first_ms is not None]
        last = [host.windows.last_ms for host in present]
        logged = self._logged.columns()
        start_ms, ended_ms = extent_of(self._started_ms, self._ended_ms, [*first, *last], logged)
        end_ms = ended_ms or max([self._started_ms, *last])
        interval_s = max((host.interval_s for host in present), default=DEFAULT_INTERVAL_S)
        windows = windows_of(start_ms, max(end_ms, start_ms + 1), interval_s)
        for host in present:
            host.windows.widen(windows.width_ms)
        return ObservedRun(
            windows=windows,
            hosts=[
                host_of(host.windows.columns(windows, host.interval_s), host.machine, host.ranks)
                for host in present
            ],
            training=training_of(windows, logged, self._marks),
            state=self._state,
            started_ms=start_ms,
            ended_ms=ended_ms,
            now_ms=ended_ms or min(now_ms, end_ms + windows.width_ms),
            out_of_memory=self._out_of_memory,
            price_per_device_hour=self._price,
        )
