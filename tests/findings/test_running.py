"""Judging while a run goes on gives what judging its whole record gives, and costs little."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from runvitals.findings.judge import judge
from runvitals.findings.running import RunningFindings
from tests.findings.scenarios.course import START_MS, Course, Scenario
from tests.findings.scenarios.healthy import healthy_runs
from tests.findings.scenarios.sick import sick_runs

SCENARIOS = [
    *sick_runs(seeds=(3,), intervals_s=(15.0,)),
    *healthy_runs(seeds=(3,), intervals_s=(15.0,)),
]
SECOND_S = [*sick_runs(seeds=(4,), intervals_s=(1.0,))][::7]


def feed(course: Course, running: RunningFindings, minutes: float, interval_s: float) -> Iterator[int]:
    """Give a run what a course measures and logs, up to some minutes; yield when all hosts were sampled."""
    hosts = course.samples()
    for host in hosts:
        running.add_host(host.name, interval_s=interval_s, machine=host.machine, ranks=host.ranks)
    until_ms = START_MS + int(minutes * 60_000)
    rows = []
    for host in hosts:
        keys, times = list(host.series), next(iter(host.series.values()))[0]
        matrix = np.column_stack([values for _, values in host.series.values()]).tolist()
        rows += [
            (time_ms, 2, host.name, dict(zip(keys, row, strict=True)))
            for time_ms, row in zip(times.tolist(), matrix, strict=True)
        ]
    logged = course.columns()
    for row, at_s in enumerate(course.steps_s.tolist()):
        data = {name: float(each.values[row]) for name, each in logged.items() if row < len(each.values)}
        rows.append((START_MS + int(at_s * 1000), 0, row, data))
    rows += [(mark.time_ms, 1, mark.text, {}) for mark in course.marks]
    for time_ms, kind, name, data in sorted(rows, key=lambda each: each[:2]):
        if time_ms >= until_ms:
            return
        if kind == 2:
            running.add_row(name, time_ms, data)
            if name == hosts[-1].name:
                yield time_ms
        elif kind == 0:
            running.log(time_ms, name, data)
        else:
            running.mark(time_ms, name)


@pytest.mark.parametrize("scenario", SCENARIOS + SECOND_S, ids=lambda scenario: scenario.name)
def test_prefixes_are_judged_as_the_whole_record_is(scenario: Scenario) -> None:
    course = scenario.course
    running = RunningFindings(START_MS)
    checks = [course.minutes * share for share in (0.2, 0.55, 1.0)]
    samples = feed(course, running, course.minutes, course.interval_s)
    for time_ms in samples:
        if checks and time_ms + course.interval_s * 1000 >= START_MS + checks[0] * 60_000:
            until_s = (time_ms - START_MS) / 1000 + 0.001
            now_ms = START_MS + int(until_s * 1000)
            assert running.judge(now_ms).to_json() == judge(course.run(until_s)).to_json()
            checks.pop(0)
    running.end(START_MS + int(course.minutes * 60_000), course.state)
    if course.state != "running":
        whole = running.judge(START_MS + int(course.minutes * 60_000))
        assert whole.to_json() == judge(course.run()).to_json()


def test_a_run_of_two_days_keeps_the_windows_of_its_whole_record() -> None:
    course = Course("h100", minutes=48 * 60, interval_s=30, devices=2, seed=5)
    course.rest(course.between(30 * 60, 40 * 60))
    course.stop_steps(30 * 60, 40 * 60)
    running = RunningFindings(START_MS)
    for _ in feed(course, running, course.minutes, 30):
        pass
    running.end(START_MS + 48 * 3_600_000, "finished")
    found = running.judge(START_MS + 48 * 3_600_000)
    assert found.to_json() == judge(course.run()).to_json()
    assert found.verdict != "healthy"


def live_changes(course: Course) -> list[tuple[str, str, int, int]]:
    """Judge a course while it goes on: what opened and closed, its number, and after how many seconds."""
    running = RunningFindings(START_MS, clock=lambda: 0.0)
    told = []
    for time_ms in feed(course, running, course.minutes, course.interval_s):
        changes = running.update(time_ms)
        for kind, listed in (("opened", changes.opened), ("closed", changes.closed)) if changes else ():
            told += [
                (kind, each.finding.id, each.number, (time_ms - START_MS) // 1000)
                for each in listed
                if each.finding.severity != "info"
            ]
    return told


def decided_s(scenario: Scenario, name: str) -> int:
    """After how many seconds, in whole minutes, the record suffices to find what is wrong."""
    for until_s in range(60, int(scenario.course.minutes * 60) + 1, 60):
        findings = judge(scenario.course.run(until_s)).findings
        if any(each.id == name and each.severity != "info" for each in findings):
            return until_s
    raise AssertionError(name)


@pytest.mark.parametrize("name", ["hang", "idle", "input_bound_cpu", "loss_not_finite"])
def test_a_finding_opens_once_and_within_two_minutes_of_its_criterion(name: str) -> None:
    (scenario, *_) = [each for each in sick_runs((7,), (15.0,)) if each.expected == (name,)]
    opened = [
        after_s for kind, id, _, after_s in live_changes(scenario.course) if kind == "opened" and id == name
    ]
    assert len(opened) == 1
    assert opened[0] - decided_s(scenario, name) <= 150


def test_what_comes_and_goes_is_one_finding() -> None:
    course = Course("h100", minutes=180, interval_s=5, step_s=0)
    for start in range(20, 160, 20):
        course.rest(course.between(start, start + 17))
    numbers = {number for kind, id, number, _ in live_changes(course) if id == "idle"}
    assert len(numbers) == 1


def test_a_healthy_run_is_judged_seldom_and_cheaply() -> None:
    course = Course("h100", minutes=240, interval_s=1, devices=8)
    running = RunningFindings(START_MS, clock=lambda: 0.0)
    judged = [
        (time_ms - START_MS) // 60_000
        for time_ms in feed(course, running, course.minutes, 1)
        if running.update(time_ms) is not None
    ]
    assert running.findings is not None
    assert running.findings.verdict == "healthy"
    assert len(judged) <= 40
    assert max(np.diff(judged)) >= 30


def test_a_clock_that_jumps_ahead_takes_no_memory() -> None:
    running = RunningFindings(START_MS)
    for second in (0, 1, 2, 3 * 10**10):
        running.add_row("node0", START_MS + 1000 * second, {"cpu": 30.0, "gpu.0.gpu": 90.0})
    assert running.observe(START_MS + 3 * 10**13).windows.count <= 2880
