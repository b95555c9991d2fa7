from __future__ import annotations

import math
import random

import pytest

from runvitals.base.backoff import MAX_REQUESTED_S, Backoff

WEEK_S = 7 * 24 * 3600.0


def test_delays_double_up_to_the_maximum() -> None:
    backoff = Backoff(first_s=1.0, longest_s=60.0)
    assert [backoff.note_failure(0.0) for _ in range(9)] == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert backoff.failures == 9


def test_a_success_resets_the_delay() -> None:
    backoff = Backoff(first_s=5.0, longest_s=60.0)
    waits = [backoff.note_failure(0.0) for _ in range(3)]
    backoff.note_success()
    assert backoff.due(0.0)
    assert [*waits, backoff.note_failure(0.0)] == [5, 10, 20, 5]


@pytest.mark.parametrize(
    ("first_s", "longest_s", "at_once", "attempts"),
    [
        (1.0, 60.0, 0, 6 + (WEEK_S - 63) / 60),
        (1.0, 60.0, 1, 7 + (WEEK_S - 63) / 60),
        (1.0, 300.0, 0, 9 + (WEEK_S - 511) / 300),
        (600.0, 300.0, 0, WEEK_S / 300),
    ],
)
def test_a_week_of_failures_makes_a_bounded_number_of_attempts(
    first_s: float, longest_s: float, at_once: int, attempts: float
) -> None:
    backoff = Backoff(first_s, longest_s, at_once=at_once)
    now_s, waits = 1000.0, []
    while now_s < 1000.0 + WEEK_S:
        if backoff.due(now_s):
            waits.append(backoff.note_failure(now_s))
        now_s = max(now_s + 1.0, math.ceil(backoff.until_s))
    assert max(waits) == longest_s
    assert len(waits) == pytest.approx(attempts, rel=0.01)
    assert len(waits) > 1024, "2.0**1024 is more than a float holds"


def test_jitter_lengthens_delays_by_up_to_a_half() -> None:
    waits = {Backoff(4.0, 60.0, random.random).note_failure(0.0) for _ in range(50)}
    assert len(waits) > 40
    assert all(4.0 <= wait_s <= 6.0 for wait_s in waits)


def test_the_first_failures_may_cause_no_delay() -> None:
    backoff = Backoff(1.0, 60.0, at_once=1)
    assert backoff.note_failure(10.0) == 0.0
    assert backoff.due(10.0)
    assert [backoff.note_failure(10.0) for _ in range(2)] == [1.0, 2.0]


@pytest.mark.parametrize(
    ("requested_s", "wait_s"),
    [
        (None, 1.0),
        (7.0, 7.0),
        (0.0, 1.0),
        (1e300, MAX_REQUESTED_S),
        (math.inf, MAX_REQUESTED_S),
        (math.nan, 1.0),
        (-5.0, 1.0),
        (-math.inf, 1.0),
    ],
)
def test_a_requested_delay_replaces_the_computed_one_within_limits(
    requested_s: float | None, wait_s: float
) -> None:
    backoff = Backoff(1.0, 60.0)
    assert backoff.note_failure(100.0, requested_s) == wait_s
    assert backoff.until_s == pytest.approx(100.0 + wait_s, rel=0.01)


def test_a_caller_that_checks_slightly_early_may_retry() -> None:
    backoff = Backoff(1.0, 60.0)
    backoff.note_failure(100.0003)
    assert backoff.due(101.0001)


def test_hurry_ends_the_delay_and_keeps_the_failures() -> None:
    backoff = Backoff(1.0, 60.0)
    backoff.note_failure(100.0)
    backoff.hurry()
    assert backoff.due(100.0)
    assert backoff.note_failure(100.0) == 2.0
