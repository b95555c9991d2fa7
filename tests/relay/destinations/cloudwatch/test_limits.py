"""The limits of PutMetricData, which moto does not enforce."""

from __future__ import annotations

import json
import math
import re

import pytest

from runvitals.relay.destinations.cloudwatch import limits
from runvitals.relay.destinations.cloudwatch.client import entry
from runvitals.relay.destinations.cloudwatch.datum import Datum, MetricSeries
from runvitals.relay.destinations.cloudwatch.split_request import RefusedReadings

NOW_S = 1_800_000_000
DAY_S = 86_400


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 2.0**361, -(2.0**361)])
def test_accepts_value_rejects_nan_infinity_and_too_large_values(value: float) -> None:
    assert not limits.accepts_value(value)


@pytest.mark.parametrize("value", [0.0, -1.5, 2.0**360, -(2.0**360), 5e-324])
def test_accepts_value_at_the_limits(value: float) -> None:
    assert limits.accepts_value(value)


@pytest.mark.parametrize(
    ("offset_s", "reason"),
    [
        (0, ""),
        (-14 * DAY_S, ""),
        (-14 * DAY_S - 60, "older than two weeks"),
        (-NOW_S + 903, "older than two weeks"),
        (2 * 3600, ""),
        (2 * 3600 + 60, "more than two hours in the future"),
    ],
)
def test_times_from_two_weeks_ago_to_two_hours_ahead(offset_s: int, reason: str) -> None:
    datum = Datum(MetricSeries("cpu"), NOW_S + offset_s, (1.0, 2.0), (1, 4))
    refusals = RefusedReadings({})
    assert limits.timely([datum], NOW_S, refusals) == ([] if reason else [datum])
    assert list(refusals.counts.values()) == ([5] if reason else [])
    assert reason in "".join(refusals.texts())


def test_valid_names_are_ascii_short_and_distinct() -> None:
    assert limits.valid_name("gpu.0.temp") == "gpu.0.temp"
    assert limits.valid_name("disk./donn\u00e9es.in\n") == "disk./donn\\xe9es.in\\x0a"
    assert limits.valid_name("  ") == "_"
    long = [limits.valid_name("x" * 300 + str(i)) for i in range(2)]
    assert [len(name) for name in long] == [255, 255]
    assert long[0] != long[1]


@pytest.mark.parametrize(
    ("namespace", "message"),
    [
        ("", "1 to 255"),
        (":a", "colon"),
        ("AWS/EC2", "AWS/ is reserved"),
        ("a" * 256, "1 to 255"),
        ("caf\u00e9", "1 to 255"),
        ("a*b", "1 to 255"),
    ],
)
def test_invalid_namespaces(namespace: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        limits.check_namespace(namespace)


@pytest.mark.parametrize(
    ("dimensions", "message"),
    [
        (tuple((f"d{i}", "1") for i in range(31)), "too many dimensions: 31; .* at most 30"),
        ((("a", "1"), ("a", "2")), "duplicate dimension 'a'"),
        (((":a", "1"),), "not starting with a colon"),
        ((("a", " "),), "1 to 1024 printable ASCII"),
        ((("a", "x" * 1025),), "1 to 1024 printable ASCII"),
        ((("a", "\u00e9"),), "1 to 1024 printable ASCII"),
    ],
)
def test_invalid_dimensions(dimensions: tuple[tuple[str, str], ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        limits.check_dimensions(dimensions)


def test_splits_data_at_150_values() -> None:
    data = list(limits.make_data(MetricSeries("cpu"), 60, {float(i): 2 for i in range(301)}, 60))
    assert [len(datum.values) for datum in data] == [150, 150, 1]
    assert sum(datum.readings for datum in data) == 602


def test_splits_requests_at_1000_data() -> None:
    data = [Datum(MetricSeries(f"m{i}"), 60, (1.0,), (1,)) for i in range(2500)]
    requests = list(limits.pack_requests(data))
    assert [len(request) for request in requests] == [1000, 1000, 500]
    assert [datum for request in requests for datum in request] == data


def test_splits_requests_at_one_megabyte() -> None:
    values = tuple(math.pi * 10.0**i for i in range(-75, 75))
    dimensions = tuple((f"dimension{i}", "/" * 1024) for i in range(3))
    names = [limits.valid_name("\u00e9" * 60 + str(i)) for i in range(400)]
    series = [MetricSeries(name, "Megabytes/Second", dimensions) for name in names]
    data = [Datum(item, 1_800_000_000, values, (1_000_000,) * 150) for item in series]
    requests = list(limits.pack_requests(data))
    assert len(requests) > 1
    sizes = [
        len(json.dumps([entry(datum) for datum in request], separators=(",", ":"))) for request in requests
    ]
    assert max(sizes) <= 1_000_000
    assert sum(map(len, requests)) == 400


def test_size_in_the_older_protocol() -> None:
    datum = Datum(MetricSeries("cpu", "Percent", (("Host", "a/b"),)), 60, (1.0 / 3,) * 150, (2,) * 150)
    assert limits.size_bytes(datum, "query") > limits.size_bytes(datum, "json")
    # As botocore writes it: MetricData.member.N.Values.member.N=…
    prefix = "MetricData.member.1000."
    written = "&".join(
        [f"{prefix}Values.member.{i + 1}={v!r}" for i, v in enumerate(datum.values)]
        + [f"{prefix}Counts.member.{i + 1}={float(c)!r}" for i, c in enumerate(datum.counts)]
        + [f"{prefix}Dimensions.member.1.Name=Host", f"{prefix}Dimensions.member.1.Value=a%2Fb"]
        + [f"{prefix}MetricName=cpu", f"{prefix}Unit=Percent", f"{prefix}StorageResolution=60"]
        + [f"{prefix}Timestamp=2027-01-15T08%3A00%3A00Z"]
    )
    assert re.match(prefix, written)
    assert limits.size_bytes(datum, "query") >= len(written)
