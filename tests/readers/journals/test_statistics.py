"""Statistics of series."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runvitals.readers.journals.series import Series
from runvitals.readers.journals.statistics import Statistics, of_series


def of(key: str, values: Any) -> Statistics:
    return of_series(Series(key, "node1", "monitor", range(len(values)), values))


def test_statistics_of_a_gauge() -> None:
    statistics = of("cpu", [4.0, math.nan, 1.0, 2.0, 3.0])
    assert (statistics.n, statistics.min, statistics.max, statistics.mean, statistics.last) == (
        4,
        1.0,
        4.0,
        2.5,
        3.0,
    )
    assert (statistics.p50, statistics.p95, statistics.total, statistics.unit) == (
        2.5,
        pytest.approx(3.85),
        None,
        "%",
    )


def test_a_counters_total_excludes_resets_and_gaps() -> None:
    assert of("disk.in", [0.0, 5.0, math.nan, 8.0, 1.0, 2.0]).total == 9.0


@pytest.mark.parametrize("values", [[], [math.nan, math.nan]])
def test_series_without_values_have_no_statistics(values: list[float]) -> None:
    statistics = of("cpu", values)
    assert (statistics.n, statistics.min, statistics.mean, statistics.p95, statistics.last) == (
        0,
        None,
        None,
        None,
        None,
    )


@given(st.lists(st.one_of(st.floats(-1e9, 1e9), st.just(math.nan)), max_size=50))
def test_lists_and_arrays_have_the_same_statistics(values: list[float]) -> None:
    from_list, from_array = of("disk.in", values), of("disk.in", np.array(values, np.float64))
    for name in ("n", "min", "max", "p50", "p95", "last"):
        assert getattr(from_list, name) == getattr(from_array, name)
    if not from_list.n:
        return
    assert from_list.mean == pytest.approx(from_array.mean, rel=1e-9, abs=1e-6)
    assert from_list.total == pytest.approx(from_array.total, rel=1e-9, abs=1e-6)


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=50))
def test_percentiles_equal_numpys(values: list[float]) -> None:
    statistics = of("cpu", values)
    assert statistics.p50 == pytest.approx(np.percentile(values, 50), rel=1e-9, abs=1e-6)
    assert statistics.p95 == pytest.approx(np.percentile(values, 95), rel=1e-9, abs=1e-6)
