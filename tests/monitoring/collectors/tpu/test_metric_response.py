"""Responses of the metric service: labels, numbers, distributions, and invalid bytes."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from runvitals.base import protobuf
from runvitals.monitoring.collectors.tpu import metric_response, metrics
from runvitals.monitoring.collectors.tpu.metric_response import TpuDistribution
from tests.monitoring.collectors.tpu import messages
from tests.monitoring.collectors.tpu.messages import distribution, exponential, gauge, metric, nested, whole


def test_gauges_of_devices() -> None:
    message = metric(
        "m", [gauge({"device-id": 8}, 1 << 33), gauge({"device-id": 9}, 0), gauge({"device-id": 12}, 0.0)]
    )
    assert [(each.device, each.value) for each in metric_response.readings(message)] == [
        (8, float(1 << 33)),
        (9, 0.0),
        (12, 0.0),
    ]


@pytest.mark.parametrize("ordinal", [3, "3"])
def test_a_device_among_several_labels(ordinal: int | str) -> None:
    (reading,) = metric_response.readings(
        metric("m", [gauge({"core_type": "TensorCore", "device_ordinal": ordinal}, 5)])
    )
    assert (reading.device, reading.value) == (3, 5.0)
    assert metrics.label(reading.labels) == "tensorcore_3"


def test_labels_of_all_types() -> None:
    distribution_of = {"text": "é", "yes": True, "count": -7, "share": 0.5}
    (reading,) = metric_response.readings(metric("m", [gauge(distribution_of, -2)]))
    assert (reading.labels, reading.value, reading.device) == (distribution_of, -2.0, None)


def test_values_that_are_not_numbers_are_none() -> None:
    text = nested(3, messages.labels({"device-id": 0}), nested(3, protobuf.text(3, "N/A")))
    nan = gauge({"device-id": 1}, float("nan"))
    empty = nested(3, messages.labels({"device-id": 2}))
    assert [each.value for each in metric_response.readings(metric("m", [text, nan, empty]))] == [
        None,
        None,
        None,
    ]


def test_a_counter() -> None:
    (reading,) = metric_response.readings(metric("m", [nested(3, nested(4, whole(2, 77)))]))
    assert reading.value == 77.0


def test_names_of_supported_metrics() -> None:
    assert metric_response.supported_metrics(messages.supported(["a.b", "c"])) == ["a.b", "c"]


def distribution_of(options: bytes, counts: list[int], largest: float = 0.0) -> TpuDistribution:
    (reading,) = metric_response.readings(
        metric("m", [distribution({"a": "b"}, counts, 3.0, options, largest)])
    )
    assert reading.distribution is not None
    return reading.distribution


def test_exponential_buckets() -> None:
    """Below 1, 1 to 2, 2 to 4, 4 to 8, above 8."""
    distribution = distribution_of(exponential(2.0, 1.0, 3), [0, 2, 4, 4, 0])
    assert distribution.bounds == [1.0, 2.0, 4.0, 8.0]
    assert (distribution.count, distribution.mean) == (10, 3.0)
    assert [distribution.percentile(percent) for percent in (20, 50, 60, 90, 100)] == [
        2.0,
        3.5,
        4.0,
        7.0,
        8.0,
    ]


def test_linear_explicit_and_unpacked_buckets() -> None:
    linear = nested(6, nested(4, whole(1, 2), messages.double(2, 10.0), messages.double(3, 5.0)))
    assert distribution_of(linear, [0, 1]).bounds == [5.0, 15.0, 25.0]
    packed = nested(6, nested(3, nested(1, b"".join(messages.double(1, bound)[1:] for bound in (1.0, 7.0)))))
    assert distribution_of(packed, [0, 1]).bounds == [1.0, 7.0]
    single = nested(6, nested(3, messages.double(1, 1.0), messages.double(1, 7.0)))
    assert distribution_of(single, [0, 1]).bounds == [1.0, 7.0]
    counts = nested(3, nested(5, whole(1, 3), single, whole(7, 1), whole(7, 2)))
    (reading,) = metric_response.readings(metric("m", [counts]))
    assert reading.distribution is not None
    assert reading.distribution.counts == [1, 2, 0]


def test_the_last_bucket_ends_at_the_largest_value() -> None:
    assert distribution_of(exponential(2.0, 1.0, 1), [0, 0, 4], largest=10.0).percentile(50) == 6.0
    assert distribution_of(exponential(2.0, 1.0, 1), [0, 0, 4]).percentile(50) == 2.0


def test_no_percentile_exceeds_the_largest_value() -> None:
    distribution = distribution_of(exponential(2.0, 1.0, 3), [0, 0, 0, 4], largest=5.0)
    assert [distribution.percentile(percent) for percent in (25, 50, 99.9)] == [5.0, 5.0, 5.0]
    assert distribution.percentile(10) == 4.4


def test_without_buckets_there_is_only_a_mean() -> None:
    distribution = distribution_of(b"", [3])
    assert (distribution.mean, distribution.percentile(50)) == (3.0, None)


def test_unbounded_buckets_are_limited() -> None:
    assert len(distribution_of(exponential(1.0, 1.0, 1 << 30), [1]).bounds) == 4097
    assert all(bound < 1e309 for bound in distribution_of(exponential(1e300, 1.0, 100), [1]).bounds)


def test_difference_to_an_earlier_distribution() -> None:
    first, second = (
        TpuDistribution(4, 1.5, [1.0, 2.0], [0, 4, 0]),
        TpuDistribution(6, 2.0, [1.0, 2.0], [0, 4, 2]),
    )
    news = second.since(first)
    assert (news.count, news.mean, news.counts) == (2, 3.0, [0, 0, 2])
    assert first.since(first).count == 0
    assert first.since(second) is first  # the program was restarted


def test_readings_with_the_same_label_are_added() -> None:
    options = exponential(2.0, 1.0, 3)
    parts = [
        distribution({"buffer-size": "1MB+", "op": op}, counts, mean, options)
        for op, counts, mean in (("a", [0, 2], 1.0), ("b", [0, 0, 2], 3.0), ("c", [0], 0.0))
    ]
    parts.append(distribution({"buffer-size": "1MB+", "op": "d"}, [1], 1.0, exponential(3.0, 1.0, 3)))
    ((name, both),) = metrics.distributions(metric_response.readings(metric("m", parts))).items()
    assert name == "1mb"
    assert (both.count, both.mean, both.counts) == (4, 2.0, [0, 2, 2, 0, 0])


@given(st.binary(max_size=300))
@example(b"\x0a\x05")
@example(b"\xff" * 12)
@example(b"\x03")
@example(b"\x00\x00")
def test_any_bytes_are_decoded_or_rejected(message: bytes) -> None:
    for read in (metric_response.readings, metric_response.supported_metrics):
        try:
            readings = read(message)
        except protobuf.Malformed:
            continue
        assert isinstance(readings, list)


WHOLE = metric(
    "m",
    [
        gauge({"core": "x", "device_ordinal": "3"}, 5.5),
        distribution({"a": "b"}, [1, 300], 2.0, exponential(2.0, 1.0, 8)),
    ],
)


@given(st.integers(0, len(WHOLE) - 1), st.integers(0, 255), st.booleans())
def test_a_damaged_response_is_decoded_or_rejected(place: int, byte: int, cut: bool) -> None:
    damaged = WHOLE[:place] if cut else WHOLE[:place] + bytes((byte,)) + WHOLE[place + 1 :]
    try:
        readings = metric_response.readings(damaged)
    except protobuf.Malformed:
        return
    for reading in readings:
        assert reading.value is None or reading.value - reading.value == 0.0
        if reading.distribution is not None:
            reading.distribution.percentile(50)
