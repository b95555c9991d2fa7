"""What goes wrong in a running run is noticed within minutes, however many runs go on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from runvitals.model.durations import MINUTE_MS
from runvitals.server.findings.judge_thread import CHANGED_LOAD, QUIET_LOAD
from runvitals.server.findings.kept_findings import EVENT
from runvitals.server.library.stored.run import StoredRun
from runvitals.server.live.follower import Follower
from tests.findings.scenarios import sick
from tests.findings.scenarios.course import START_MS, Course
from tests.server.findings.live_runs import LiveRuns

KEYS = ("cpu", "cpu.mean", "memory_percent", "gpu.0.gpu", "gpu.0.powerPercent")


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[LiveRuns]:
    runs = LiveRuns(tmp_path)
    yield runs
    runs.close()


def quiet(minutes: float = 120) -> Course:
    return Course("a100", minutes=minutes, interval_s=30, devices=1, step_s=0, start_s=0)


def test_a_hang_among_many_runs_opens_as_soon_as_alone(runs: LiveRuns) -> None:
    hung = sick.hang("h100", minutes=60, interval_s=10.0)
    runs.add(["hung"], hung)
    runs.go_on(50)
    [(_, _, alone)] = runs.changes("hung", "hang")[:1]
    assert alone - 30 <= 10


def test_many_runs_that_start_together_are_judged_little_by_little(runs: LiveRuns) -> None:
    """Each judgement is said to take 0.5 s, so that not all runs can be judged in half an hour."""
    runs.findings.cost_s = 0.5
    runs.add((f"run-{number}" for number in range(300)), quiet(), KEYS)
    runs.add(["hung"], sick.hang("h100", minutes=60, interval_s=10.0))
    allowed = CHANGED_LOAD + QUIET_LOAD
    runs.go_on(10)
    assert runs.findings.spent_s <= allowed * 11 * 60 + 1
    known = sum(runs.kept(name) is not None for name in runs.ids)
    assert 40 <= known <= 80
    runs.go_on(35)
    assert runs.findings.spent_s <= allowed * 46 * 60 + 1
    [(kind, _, opened), *_] = runs.changes("hung", "hang")
    assert kind == "FindingOpened"
    assert opened - 30 <= 10


def test_what_is_found_grows_and_reaches_those_who_follow_the_run(runs: LiveRuns) -> None:
    course = Course("h100", minutes=120, interval_s=10.0)
    course.scale(course.between(20, 60), 0.4)
    for host in course.hosts:
        host["cpu"][course.between(20, 60)] = 98.0
    for name, column in sick.input_bound_cpu("h100", minutes=120, interval_s=10.0).hosts[0].items():
        course.hosts[0][name][course.between(20, 60)] = column[course.between(20, 60)]
    runs.add(["a"], course)
    view = StoredRun("a", runs.ids["a"], runs.store, runs.metadata_store)
    follower = Follower("", lambda: runs.now_ms)
    told: list[str] = []
    hours: list[float] = []
    for _ in range(100):
        runs.go_on(1)
        view.refresh()
        facts = follower.changes(view, dict(view.position())).get("run")
        if facts is not None and facts["verdict"] is not None:
            told.append(facts["verdict"]["id"])
            hours.append(facts["verdict"]["lost_device_hours"])
    changes = Counter(kind for kind, _, _ in runs.changes("a", "input_bound_cpu"))
    assert changes["FindingOpened"] == changes["FindingClosed"] == 1
    assert changes["FindingGrew"] >= 5
    assert list(dict.fromkeys(told))[:2] == ["healthy", "input_bound_cpu"]
    assert len(set(hours)) >= 4
    assert all(later >= 0.95 * earlier for earlier, later in pairwise(hours))
    events = [event for event in view.events(runs.now_ms, 0, 100) if event.name == EVENT]
    assert [event.data["state"] for event in events if event.data["finding"] == "input_bound_cpu"] == [
        "open",
        "closed",
    ]


def test_what_flaps_is_one_finding(runs: LiveRuns) -> None:
    course = Course("h100", minutes=180, interval_s=10.0, step_s=0)
    for start in range(20, 160, 20):
        course.rest(course.between(start, start + 17))
    runs.add(["a"], course)
    runs.go_on(170)
    changes = Counter(kind for kind, _, _ in runs.changes("a", "idle"))
    assert changes["FindingOpened"] == 2
    assert changes["FindingClosed"] == 1
    assert changes["FindingGrew"] >= 3
    assert {number for _, number, _ in runs.changes("a", "idle")} == {2}


def test_a_run_of_which_nothing_arrives_is_judged_soon(runs: LiveRuns) -> None:
    runs.add(["a"], quiet(), KEYS)
    runs.go_on(70)
    before = runs.kept("a")
    assert before is not None
    runs.silent.add("a")
    runs.go_on(3.5)
    after = runs.kept("a")
    assert after is not None
    assert after.judged_ms > before.judged_ms


def test_a_server_that_begins_to_lead_judges_what_it_does_not_know(runs: LiveRuns) -> None:
    runs.add(["well"], quiet(), KEYS)
    runs.go_on(57)
    before = runs.kept("well")
    assert before is not None
    assert runs.now_ms - before.judged_ms > 5 * MINUTE_MS
    runs.restart()
    runs.go_on(1)
    after = runs.kept("well")
    assert after is not None
    assert after.judged_ms > before.judged_ms


def test_a_run_that_ends_is_judged_at_once(runs: LiveRuns) -> None:
    runs.add(["a"], quiet(), KEYS)
    runs.go_on(20)
    runs.now_ms += 60 * MINUTE_MS  # it is lost
    runs.thread.judge_due()
    kept = runs.kept("a")
    assert kept is not None
    assert kept.is_final
    assert kept.up_to_ms > START_MS
