"""Findings keep their identity from one judgement of a run to the next."""

from __future__ import annotations

from dataclasses import replace

from runvitals.findings.changes import HOLD_MS, RETURN_MS, FindingTracker
from runvitals.findings.finding import Finding, Findings

MINUTE = 60_000
IDLE = Finding(
    "idle", "warning", "likely", 10 * MINUTE, None, 0.5, ("node0",), (0, 1), (), "Idle.", (), 1.0, "Do.", "d"
)


def judged(*findings: Finding) -> Findings:
    """A judgement with these findings."""
    return Findings("healthy", "", findings)


def test_a_finding_opens_grows_and_closes() -> None:
    tracker = FindingTracker()
    (opened,) = tracker.update(judged(IDLE), 20 * MINUTE).opened
    assert not tracker.update(judged(IDLE), 22 * MINUTE)
    worse = replace(IDLE, severity="critical", devices=(0, 1, 2), from_ms=9 * MINUTE)
    (changed,) = tracker.update(judged(worse), 24 * MINUTE).changed
    assert (changed.number, changed.finding.severity) == (opened.number, "critical")
    ended = replace(worse, to_ms=25 * MINUTE)
    assert tracker.update(judged(ended), 26 * MINUTE).closed == []
    (closed,) = tracker.update(judged(ended), 25 * MINUTE + HOLD_MS).closed
    assert (closed.number, closed.finding.to_ms) == (opened.number, 25 * MINUTE)
    assert not tracker.update(judged(ended), 60 * MINUTE)


def test_one_that_vanishes_closes_when_it_was_last_seen() -> None:
    tracker = FindingTracker()
    tracker.update(judged(IDLE), 20 * MINUTE)
    assert not tracker.update(judged(), 22 * MINUTE)
    (closed,) = tracker.update(judged(), 20 * MINUTE + HOLD_MS).closed
    assert closed.finding.to_ms == 20 * MINUTE


def test_one_that_comes_back_keeps_its_number() -> None:
    tracker = FindingTracker()
    ended = replace(IDLE, to_ms=15 * MINUTE)
    tracker.update(judged(ended), 16 * MINUTE)
    tracker.update(judged(ended), 30 * MINUTE)
    again = replace(IDLE, from_ms=40 * MINUTE)
    changes = tracker.update(judged(again), 50 * MINUTE)
    assert [each.number for each in changes.opened] == [1]
    late = replace(IDLE, from_ms=60 * MINUTE + RETURN_MS)
    tracker.update(judged(replace(again, to_ms=55 * MINUTE)), 61 * MINUTE)
    assert [each.number for each in tracker.update(judged(late), 70 * MINUTE + RETURN_MS).opened] == [2]


def test_other_devices_are_another_finding() -> None:
    tracker = FindingTracker()
    other = replace(IDLE, devices=(7,))
    assert [each.number for each in tracker.update(judged(IDLE, other), 20 * MINUTE).opened] == [1, 2]
    assert not tracker.update(judged(other, IDLE), 21 * MINUTE)


def test_a_tracker_goes_on_after_a_restart() -> None:
    tracker = FindingTracker()
    tracker.update(judged(IDLE), 20 * MINUTE)
    assert not FindingTracker(tracker.tracked).update(judged(IDLE), 21 * MINUTE)


def test_all_close_with_the_run() -> None:
    tracker = FindingTracker()
    tracker.update(judged(IDLE), 20 * MINUTE)
    (closed,) = tracker.update(judged(IDLE), 21 * MINUTE, ended=True).closed
    assert closed.finding.to_ms == 21 * MINUTE
