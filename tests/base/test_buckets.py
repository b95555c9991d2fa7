"""The bucket grid, compared with a simple model."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runvitals.base.buckets import WIDTHS_MS, Grid, combine, grid, reduce

TIMES = st.integers(-(2**40), 2**41)


@given(t0=TIMES, span=st.integers(0, 2**40), max_points=st.integers(2, 2000))
def test_grid_covers_its_range_with_a_bounded_number_of_round_buckets(
    t0: int, span: int, max_points: int
) -> None:
    buckets_of_range = grid(t0, t0 + span, max_points)
    assert buckets_of_range.t0_ms <= t0
    assert t0 + span < buckets_of_range.t0_ms + buckets_of_range.count * buckets_of_range.width_ms
    assert 1 <= buckets_of_range.count <= max_points
    assert buckets_of_range.t0_ms % buckets_of_range.width_ms == 0


@given(t0=TIMES, span=st.integers(1, 10**10), max_points=st.integers(2, 2000))
def test_next_finer_width_would_have_too_many_buckets(t0: int, span: int, max_points: int) -> None:
    buckets_of_range = grid(t0, t0 + span, max_points)
    finer = [width for width in WIDTHS_MS if width < buckets_of_range.width_ms]
    if finer and buckets_of_range.width_ms in WIDTHS_MS:
        assert (t0 + span) // finer[-1] - t0 // finer[-1] + 1 > max_points


def test_bucket_of_a_time_does_not_depend_on_the_range() -> None:
    assert grid(61_234, 121_000, 100).t0_ms % 1000 == 0
    assert {grid(start, start + 99_000, 110).width_ms for start in range(0, 3000, 7)} == {1000}


@pytest.mark.parametrize(
    ("t0", "t1", "max_points", "text"),
    [(5, 4, 10, "before the start"), (0, 10, 1, "expected at least 2")],
)
def test_invalid_grids(t0: int, t1: int, max_points: int, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        grid(t0, t1, max_points)


@given(
    rows=st.lists(
        st.tuples(st.integers(-500, 5000), st.one_of(st.just(math.nan), st.floats(-1e12, 1e12))), max_size=60
    ),
    width=st.integers(1, 700),
    count=st.integers(1, 20),
    t0=st.integers(-300, 300),
)
def test_buckets_match_the_model(rows: list[tuple[int, float]], width: int, count: int, t0: int) -> None:
    rows.sort(key=lambda row: row[0])
    model: dict[int, list[float]] = {}
    for t, value in rows:
        index = (t - t0) // width
        if 0 <= index < count:
            model.setdefault(t0 + index * width, []).append(value)

    t, values = np.array([r[0] for r in rows], np.int64), np.array([r[1] for r in rows], np.float64)
    buckets = reduce(Grid(t0, width, count), t, values)

    assert buckets.t.tolist() == list(model)
    for i, bucket in enumerate(model.values()):
        present = [value for value in bucket if not math.isnan(value)]
        assert buckets.n[i] == len(present)
        if not present:
            assert all(
                math.isnan(column[i]) for column in (buckets.min, buckets.max, buckets.mean, buckets.last)
            )
            continue
        assert (buckets.min[i], buckets.max[i], buckets.last[i]) == (min(present), max(present), present[-1])
        assert buckets.mean[i] == pytest.approx(sum(present) / len(present), rel=1e-9, abs=1e-3)
        assert buckets.min[i] <= buckets.mean[i] <= buckets.max[i]
        assert buckets.statistic("sum")[i] == pytest.approx(buckets.mean[i] * len(present))


def test_grid_may_have_more_buckets_than_memory() -> None:
    buckets = reduce(Grid(0, 1, 2**50), np.array([5, 5, 2**49]), np.array([1.0, 2.0, 3.0]))
    assert (buckets.t.tolist(), buckets.n.tolist(), buckets.last.tolist()) == ([5, 2**49], [2, 1], [2.0, 3.0])


def test_mean_does_not_overflow() -> None:
    buckets = reduce(Grid(0, 10, 1), np.array([1, 2]), np.array([1.7e308, 1.7e308]))
    assert buckets.mean[0] == 1.7e308


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 300), st.one_of(st.just(math.nan), st.floats(-1e9, 1e9))),
        max_size=40,
        unique_by=lambda row: row[0],
    ),
    cuts=st.lists(st.integers(0, 40), max_size=4),
)
def test_merged_buckets_of_parts_equal_those_of_the_whole(
    rows: list[tuple[int, float]], cuts: list[int]
) -> None:
    rows.sort(key=lambda row: row[0])
    on = Grid(0, 50, 7)
    t, values = np.array([r[0] for r in rows], np.int64), np.array([r[1] for r in rows], np.float64)
    bounds = [0, *sorted(cuts), len(rows)]
    parts = [reduce(on, t[a:b], values[a:b]) for a, b in itertools.pairwise(bounds)]

    whole, together = reduce(on, t, values), combine(parts)

    for name in ("t", "n", "min", "max", "last"):
        np.testing.assert_array_equal(getattr(together, name), getattr(whole, name))
    np.testing.assert_allclose(together.mean, whole.mean, rtol=1e-9, atol=1e-3)
