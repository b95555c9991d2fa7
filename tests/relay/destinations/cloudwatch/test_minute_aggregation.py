from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runvitals.relay.destinations.cloudwatch.datum import Datum, MetricSeries
from runvitals.relay.destinations.cloudwatch.minute_aggregation import MinuteAggregation

CPU = MetricSeries("cpu", "Percent")


def test_aggregates_a_minute_into_one_datum() -> None:
    aggregation = MinuteAggregation()
    for i in range(12):
        aggregation.add(CPU, 60_000 + i * 5_000, 50.0 if i % 3 else 75.0)
    assert aggregation.take() == [Datum(CPU, 60, (75.0, 50.0), (4, 8))]
    assert aggregation.take() == []


def test_keeps_an_unfinished_minute() -> None:
    aggregation = MinuteAggregation()
    aggregation.add(CPU, 59_999, 1.0)
    aggregation.add(CPU, 60_000, 2.0)
    assert [datum.time_s for datum in aggregation.take(before_ms=119_999)] == [0]
    assert [datum.time_s for datum in aggregation.take(before_ms=120_000)] == [60]


def test_high_resolution_aggregates_by_second() -> None:
    aggregation = MinuteAggregation(resolution_s=1)
    aggregation.add(CPU, 61_000, 1.0)
    aggregation.add(CPU, 61_900, 1.0)
    aggregation.add(CPU, 66_000, 1.0)
    assert aggregation.take() == [Datum(CPU, 61, (1.0,), (2,), 1), Datum(CPU, 66, (1.0,), (1,), 1)]


def test_counts_values_that_cannot_be_sent() -> None:
    aggregation = MinuteAggregation()
    for value in (float("nan"), float("inf"), 1e200, 3.0):
        aggregation.add(CPU, 0, value)
    assert aggregation.rejected == 3
    assert aggregation.take() == [Datum(CPU, 0, (3.0,), (1,))]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b"]), st.integers(0, 200_000), st.floats(-1e6, 1e6, allow_nan=False)
        ),
        max_size=400,
    )
)
def test_aggregation_keeps_every_reading(samples: list[tuple[str, int, float]]) -> None:
    aggregation = MinuteAggregation(max_values=7)
    for name, time_ms, value in samples:
        aggregation.add(MetricSeries(name), time_ms, value)
    readings = sorted(
        (datum.series.name, datum.time_s, value)
        for datum in aggregation.take()
        for value, count in zip(datum.values, datum.counts, strict=True)
        for _ in range(count)
    )
    assert readings == sorted((name, t // 60_000 * 60, value) for name, t, value in samples)
