"""Counters that start at 0 with the run."""

from __future__ import annotations

import math

import pytest

from runvitals.monitoring.monitor.baselines import Baselines


def counted(baselines: Baselines, *totals: float) -> list[float]:
    """The values of a counter for these totals of its source."""
    counts = []
    for total in totals:
        values: dict[str, float] = {}
        baselines.add({"disk.in": total}, values)
        counts.append(values["disk.in"])
    return counts


def test_a_counter_starts_at_zero_with_the_run() -> None:
    baselines = Baselines()
    assert counted(baselines, 100.0, 100.0, 130.0) == [0.0, 0.0, 30.0]
    assert baselines.fresh == {"disk.in": 100.0}


def test_a_counter_that_is_reset_leaves_a_gap_and_never_falls() -> None:
    baselines = Baselines()
    values = counted(baselines, 100.0, 130.0, 5.0, 15.0)
    assert math.isnan(values.pop(2))
    assert values == [0.0, 30.0, 40.0]


def test_a_counter_continues_from_the_baseline_of_the_previous_monitor() -> None:
    baselines = Baselines({"disk.in": 100.0})
    assert counted(baselines, 150.0) == [50.0]
    assert baselines.fresh == {"disk.in": 100.0}, "written again, for the next monitor"


@pytest.mark.parametrize("next_total", [130.0, 140.0])
def test_a_single_total_that_was_too_low_adds_nothing(next_total: float) -> None:
    values = counted(Baselines(), 100.0, 130.0, 0.0, next_total)
    assert math.isnan(values[2])
    assert values[3] == next_total - 100.0


def test_each_counter_that_falls_is_reported_once() -> None:
    baselines = Baselines()
    counted(baselines, 100.0, 5.0)
    assert baselines.fallen == {"disk.in": (100.0, 5.0)}
    baselines.fallen = {}
    counted(baselines, 9.0, 1.0)
    assert baselines.fallen == {}


def test_rounding_is_no_reset() -> None:
    baselines = Baselines()
    assert counted(baselines, 1e6, 1e6 + 0.3, 1e6 + 0.3 - 1e-9) == pytest.approx([0.0, 0.3, 0.3])
    assert baselines.fallen == {}


def test_the_next_monitor_continues_after_a_reset() -> None:
    baselines = Baselines()
    counted(baselines, 100.0, 130.0, 5.0, 15.0)
    assert counted(Baselines(baselines.fresh), 20.0) == [45.0]


def test_what_is_left_out_does_not_count() -> None:
    baselines = Baselines()
    counted(baselines, 100.0, 130.0)
    baselines.leave_out("disk.in", 9000.0)
    assert counted(baselines, 9010.0) == [40.0]


@pytest.mark.parametrize(("totals", "expected"), [([100.0, 130.0], 30.0), ([], 0.0)])
def test_a_counter_goes_on_after_an_infinite_total(totals: list[float], expected: float) -> None:
    baselines, values = Baselines(), {}
    for total in (*totals, float("inf"), 130.0):
        baselines.add({"disk.in": total}, values)
    assert values["disk.in"] == expected
