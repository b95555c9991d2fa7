from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runvitals.relay.destinations.cloudwatch.datum import Datum, MetricSeries
from runvitals.relay.destinations.cloudwatch.minute_aggregation import MinuteAggregation

CPU = MetricSeries("cpu", "Percent")


def test_a_minute_of_5_s_samples_is_one_datum_with_its_values_and_counts() -> None:
    fold = MinuteAggregation()
    for i in range(12):
        fold.add(CPU, 60_000 + i * 5_000, 50.0 if i % 3 else 75.0)
    assert fold.take() == [Datum(CPU, 60, (75.0, 50.0), (4, 8))]
    assert fold.take() == []


def test_a_minute_that_goes_on_is_left_alone() -> None:
    fold = MinuteAggregation()
    fold.add(CPU, 59_999, 1.0)
    fold.add(CPU, 60_000, 2.0)
    assert [datum.time_s for datum in fold.take(before_ms=119_999)] == [0]
    assert [datum.time_s for datum in fold.take(before_ms=120_000)] == [60]


def test_high_resolution_keeps_the_second() -> None:
    fold = MinuteAggregation(resolution_s=1)
    fold.add(CPU, 61_000, 1.0)
    fold.add(CPU, 61_900, 1.0)
    fold.add(CPU, 66_000, 1.0)
    assert fold.take() == [Datum(CPU, 61, (1.0,), (2,), 1), Datum(CPU, 66, (1.0,), (1,), 1)]


def test_what_is_no_number_is_counted_and_left_out() -> None:
    fold = MinuteAggregation()
    for value in (float("nan"), float("inf"), 1e200, 3.0):
        fold.add(CPU, 0, value)
    assert fold.refused == 3
    assert fold.take() == [Datum(CPU, 0, (3.0,), (1,))]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b"]), st.integers(0, 200_000), st.floats(-1e6, 1e6, allow_nan=False)
        ),
        max_size=400,
    )
)
def test_nothing_is_lost_or_invented(samples: list[tuple[str, int, float]]) -> None:
    fold = MinuteAggregation(most_values=7)
    for name, time_ms, value in samples:
        fold.add(MetricSeries(name), time_ms, value)
    unfolded = sorted(
        (datum.series.name, datum.time_s, value)
        for datum in fold.take()
        for value, count in zip(datum.values, datum.counts, strict=True)
        for _ in range(count)
    )
    assert unfolded == sorted((name, t // 60_000 * 60, value) for name, t, value in samples)
