"""A run that goes on is judged soon after something changed, and seldom while nothing does."""

from __future__ import annotations

import numpy as np
import pytest

from runvitals.findings.judge import judge
from runvitals.findings.pace import FEW_CHANGES, JudgementPace, Urgency
from runvitals.findings.run_watch import NewestValues, RunWatch, WatchedKeys
from runvitals.model.durations import HOUR_MS, MINUTE_MS
from runvitals.model.names import STEP
from tests.findings.scenarios.course import START_MS, Course, Scenario
from tests.findings.scenarios.live import due_times, judgements
from tests.findings.scenarios.sick import sick_runs

SECOND = 1000
HOST = WatchedKeys(("cpu", "gpu.0.gpu", "gpu.1.gpu", "gpu.0.unCorrectedMemoryErrors", "disk./.usagePercent"))
TRAINING = WatchedKeys(("loss", STEP))


class Watched:
    """A run of a host and a process that logs, looked at each half minute and judged when that is due."""

    def __init__(self) -> None:
        self.watch = RunWatch(START_MS)
        self.now_ms = START_MS
        self.host = {"cpu": 30.0, "gpu.0.gpu": 95.0, "gpu.1.gpu": 95.0}
        self.loss: float | None = 2.0
        self.step_s = 1.0
        self.logged_ms = START_MS
        self.loss_ms = START_MS
        self.sends = self.trains = True
        self.sampled_ms = dict.fromkeys(HOST.keys, START_MS)
        self.gone: set[str] = set()

    def look(self) -> None:
        """Look at the newest values, half a minute later."""
        self.now_ms += 30 * SECOND
        if self.sends:
            self.sampled_ms |= dict.fromkeys(self.host.keys() - self.gone, self.now_ms)
        if self.trains:
            self.logged_ms = self.now_ms
            self.loss_ms = self.now_ms if self.loss is not None else self.loss_ms
        self.watch.look(self.now_ms, [self._of_host(), self._of_training()])

    def _of_host(self) -> NewestValues:
        values = np.array([self.host.get(key, 0.0) for key in HOST.keys])
        return NewestValues(1, HOST, np.array([self.sampled_ms[key] for key in HOST.keys]), values)

    def _of_training(self) -> NewestValues:
        step = (self.logged_ms - START_MS) / 1000 / self.step_s
        times = np.array([self.loss_ms, self.logged_ms])
        return NewestValues(2, TRAINING, times, np.array([2.0 if self.loss is None else self.loss, step]))

    def go_on(self, minutes: float) -> list[tuple[float, Urgency]]:
        """Go on for some minutes; return after how many of them it was judged, and why."""
        began_ms, judged = self.now_ms, []
        while self.now_ms < began_ms + minutes * MINUTE_MS:
            self.look()
            urgency = self.watch.pace.due(self.now_ms)
            if urgency is not None:
                judged.append(((self.now_ms - began_ms) / MINUTE_MS, urgency))
                self.watch.pace.judged(self.now_ms, 0.02)
        return judged


@pytest.fixture
def settled() -> Watched:
    """A run that goes on as it did for six hours."""
    watched = Watched()
    assert len(watched.go_on(360)) <= 15
    return watched


def urgent(judged: list[tuple[float, Urgency]], why: Urgency) -> float:
    """The minutes until the first judgement, which is due for a reason."""
    assert judged
    assert judged[0][1] is why
    return judged[0][0]


def test_nothing_is_urgent_while_nothing_changes(settled: Watched) -> None:
    judged = settled.go_on(24 * 60)
    assert {why for _, why in judged} == {Urgency.QUIET}
    assert len(judged) <= 8


def test_steps_that_stop(settled: Watched) -> None:
    settled.trains = False
    judged = settled.go_on(30)
    assert urgent(judged, Urgency.STOPPED) <= 2
    assert len(judged) >= 6  # a criterion of a quarter of an hour is not met at once
    settled.trains = True
    assert urgent(settled.go_on(3), Urgency.CHANGED) <= 2


def test_steps_of_minutes_do_not_stop() -> None:
    watched = Watched()
    for _ in range(8):
        watched.trains = False
        watched.go_on(9.5)
        watched.trains = True
        watched.look()
    watched.trains = False
    assert all(why is not Urgency.STOPPED for _, why in watched.go_on(9.5))
    assert Urgency.STOPPED in {why for _, why in watched.go_on(30)}


def test_steps_that_take_longer(settled: Watched) -> None:
    settled.step_s = 4.0
    assert urgent(settled.go_on(5), Urgency.CHANGED) <= 2


def test_a_host_of_which_nothing_arrives(settled: Watched) -> None:
    settled.sends = False
    assert urgent(settled.go_on(5), Urgency.STOPPED) <= 2.5


def test_a_device_that_is_gone(settled: Watched) -> None:
    settled.gone.add("gpu.1.gpu")
    assert urgent(settled.go_on(5), Urgency.STOPPED) <= 3


def test_a_loss_that_is_no_number(settled: Watched) -> None:
    settled.loss = None
    assert urgent(settled.go_on(5), Urgency.STOPPED) <= 3


def test_a_loss_that_is_infinite(settled: Watched) -> None:
    settled.loss = float("inf")
    assert urgent(settled.go_on(5), Urgency.STOPPED) <= 1


def test_a_loss_may_fall(settled: Watched) -> None:
    settled.loss = 0.2
    assert all(why is Urgency.QUIET for _, why in settled.go_on(30))
    settled.loss = 2.0
    assert urgent(settled.go_on(5), Urgency.CHANGED) <= 2


def test_a_level_that_changes(settled: Watched) -> None:
    settled.host["gpu.0.gpu"] = 40.0
    assert urgent(settled.go_on(5), Urgency.CHANGED) <= 2


def test_a_disk_that_fills(settled: Watched) -> None:
    settled.host["disk./.usagePercent"] = 40.0
    settled.go_on(60)
    settled.host["disk./.usagePercent"] = 41.5
    assert urgent(settled.go_on(5), Urgency.CHANGED) <= 2


def test_one_error_is_enough(settled: Watched) -> None:
    settled.host["gpu.0.unCorrectedMemoryErrors"] = 0.0
    settled.go_on(60)
    settled.host["gpu.0.unCorrectedMemoryErrors"] = 1.0
    assert urgent(settled.go_on(5), Urgency.CHANGED) <= 1


def test_what_changes_again_and_again_is_judged_each_few_minutes() -> None:
    pace, judged = JudgementPace(0), []
    for now_ms in range(0, HOUR_MS, 30 * SECOND):
        pace.change(now_ms, has_stopped=False)
        if pace.due(now_ms) is not None:
            judged.append(now_ms)
            pace.judged(now_ms, 0.02)
    assert judged[:2] == [MINUTE_MS, 2 * MINUTE_MS]
    assert set(np.diff(judged)[-5:]) == {FEW_CHANGES * MINUTE_MS}


def test_after_a_restart_a_run_is_judged_first_and_one_that_has_stopped_sooner(settled: Watched) -> None:
    settled.watch = RunWatch(START_MS)
    assert urgent(settled.go_on(1), Urgency.FIRST) <= 1
    settled.trains = False
    settled.go_on(4)
    settled.watch = RunWatch(START_MS)
    assert urgent(settled.go_on(1), Urgency.STOPPED) <= 1


def test_a_judgement_that_takes_long_is_made_less_often() -> None:
    pace = JudgementPace(0)
    pace.change(MINUTE_MS, has_stopped=False)
    pace.judged(MINUTE_MS, 30.0)
    pace.change(2 * MINUTE_MS, has_stopped=True)
    assert pace.due(10 * MINUTE_MS) is None
    assert pace.due(11 * MINUTE_MS) is Urgency.STOPPED


def test_a_healthy_run_of_a_day_is_judged_seldom() -> None:
    course = Course("h100", minutes=24 * 60, interval_s=30, devices=8)
    judged = list(due_times(course))
    assert len(judged) <= 40
    assert sum(now_ms > START_MS + 2 * HOUR_MS for now_ms, _ in judged) <= 10


def decided_s(scenario: Scenario, name: str) -> int:
    """After how many seconds, in whole minutes, the record suffices to find what is wrong."""
    for until_s in range(60, int(scenario.course.minutes * 60) + 1, 60):
        findings = judge(scenario.course.run(until_s)).findings
        if any(each.id == name and each.severity != "info" for each in findings):
            return until_s
    raise AssertionError(name)


@pytest.mark.parametrize(
    "name", ["hang", "idle_devices", "input_bound_cpu", "loss_not_finite", "loss_diverged", "straggler"]
)
def test_a_finding_is_found_within_minutes_of_its_criterion(name: str) -> None:
    scenario = next(each for each in sick_runs((7,), (15.0,)) if each.expected == (name,))
    opened_s = [
        (now_ms - START_MS) // 1000
        for now_ms, findings in judgements(scenario.course)
        if any(each.id == name and each.severity != "info" for each in findings.findings)
    ]
    assert opened_s[0] - decided_s(scenario, name) <= 240
