"""Counts per period and totals become counters that only grow."""

from __future__ import annotations

from runvitals.monitoring.collectors.trainium.counters import RunningTotals


def written(totals: RunningTotals) -> dict[str, float]:
    counters: dict[str, float] = {}
    totals.write(counters)
    return counters


def test_a_sum_starts_at_0_so_that_its_first_count_is_growth() -> None:
    totals = RunningTotals()
    totals.add("done", 7)
    assert [written(totals), written(totals)] == [{"done": 0.0}, {"done": 7.0}]
    totals.add("done", 3)
    assert written(totals) == {"done": 10.0}


def grown(values: list[float], from_zero: bool = False) -> float:
    totals = RunningTotals()
    for value in values:
        totals.grow("errors", 1, value, from_zero)
    written(totals)
    return written(totals)["errors"]


def test_a_running_total_grows_by_its_differences() -> None:
    assert grown([23654, 23692, 23749]) == 95.0


def test_the_first_total_of_a_process_started_later_counts() -> None:
    assert grown([4, 6], from_zero=True) == 6.0


def test_a_falling_number_counts_periods() -> None:
    assert grown([0, 1, 0, 2, 2, 2, 0]) == 7.0


def test_codes_for_no_value_are_not_added() -> None:
    assert grown([10, 4294967295, 12]) == 2.0
    totals = RunningTotals()
    totals.add("done", 4294967295)
    totals.add("done", 3)
    written(totals)
    assert written(totals) == {"done": 3.0}


def test_sources_are_kept_apart() -> None:
    totals = RunningTotals()
    for first, second in ((10, 500), (12, 500)):
        totals.grow("errors", 1, first, False)
        totals.grow("errors", 2, second, False)
    written(totals)
    assert written(totals) == {"errors": 2.0}


def test_a_source_may_come_back_with_a_lower_total() -> None:
    totals = RunningTotals()
    totals.grow("errors", 1, 100, False)
    totals.forget(set())
    for value in (5, 6, 7):
        totals.grow("errors", 1, value, True)
    written(totals)
    assert written(totals) == {"errors": 7.0}
