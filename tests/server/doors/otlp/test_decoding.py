"""Messages in protocol buffers and JSON: orders of fields, kinds of attributes, and hostile ones."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import json_format

from runvitals.base.protobuf import double, fixed64, text, uint
from runvitals.server.doors.otlp import json_decoding, protobuf_decoding
from runvitals.server.doors.otlp.message import Resource, SentMetric
from runvitals.server.http.request_errors import HttpRejection
from tests.server.doors.otlp.messages import CUMULATIVE, NO_VALUE, gauge, histogram, request, total

T = 1_760_000_000_000_000_000
ATTRIBUTE = text(7, text(1, "cpu") + text(2, text(1, "cpu0")))


def numbers(metric: bytes) -> list[tuple[dict[str, str], int, int, float]]:
    (resource,) = protobuf_decoding.decode(text(1, text(2, text(2, text(1, "m") + metric))))
    return [
        (dict(resource.attributes_of(encoded)), start, time, value)
        for encoded, start, time, value in resource.metrics[0].numbers
    ]


@pytest.mark.parametrize(
    "fields",
    [
        (fixed64(2, 5), fixed64(3, T), double(4, 1.5), ATTRIBUTE),
        (ATTRIBUTE, double(4, 1.5), fixed64(3, T), fixed64(2, 5)),
        (fixed64(2, 5), ATTRIBUTE, fixed64(3, T), double(4, 1.5)),
        (fixed64(2, 5), fixed64(3, T), double(4, 1.5), text(5, b"an exemplar"), ATTRIBUTE),
        (fixed64(2, 5), fixed64(3, T), double(4, 1.5), ATTRIBUTE, uint(8, 0)),
        (fixed64(2, 5), fixed64(3, T), double(4, 1.5), ATTRIBUTE, uint(99, 7)),
    ],
)
def test_fields_of_a_point_in_any_order(fields: tuple[bytes, ...]) -> None:
    assert numbers(text(5, text(1, b"".join(fields)))) == [({"cpu": "cpu0"}, 5, T, 1.5)]


def test_an_attribute_that_ends_like_flags_is_no_gap() -> None:
    odd = text(7, text(1, "cpu") + text(2, text(1, b"@\x01")))
    point = fixed64(3, T) + double(4, 1.5) + odd
    assert numbers(text(5, text(1, point))) == [({"cpu": "@\x01"}, 0, T, 1.5)]


def test_the_temporality_may_precede_the_points() -> None:
    points = text(1, fixed64(3, T) + double(4, 1.5))
    (resource,) = protobuf_decoding.decode(
        text(1, text(2, text(2, text(1, "m") + text(7, uint(2, 1) + uint(3, 1) + points + points))))
    )
    (metric,) = resource.metrics
    assert (metric.is_delta, metric.is_monotonic, len(metric.numbers)) == (True, True, 2)


def plain(resources: list[Resource]) -> Any:
    """What was decoded, with attributes as texts."""

    def of_metric(resource: Resource, metric: SentMetric) -> Any:
        points = [
            (dict(resource.attributes_of(encoded)), *rest, repr(value))
            for encoded, *rest, value in metric.numbers
        ]
        histograms = [
            (dict(resource.attributes_of(one.attributes)), one.time_ns, one.count, one.sum, dict(one.buckets))
            for one in metric.histograms
        ]
        return metric.name, metric.unit, metric.kind, metric.is_delta, metric.is_monotonic, points, histograms

    return [(one.attributes, [of_metric(one, metric) for metric in one.metrics]) for one in resources]


def test_both_encodings_are_the_same() -> None:
    attributes = {"text": "é", "flag": True, "count": -3, "share": 0.5}
    message = request(
        {"host.name": "node1", **attributes},
        gauge("a", "By", {"time_unix_nano": T, "as_double": float("nan"), "attributes": attributes}),
        gauge("b", "", {"time_unix_nano": T, "as_int": -(2**62)}, {"time_unix_nano": T, "flags": NO_VALUE}),
        total("c", "1", {"start_time_unix_nano": 1, "time_unix_nano": T, "as_double": float("-inf")}),
        histogram(
            "d",
            "s",
            {
                "time_unix_nano": T,
                "count": 3,
                "sum": 4.0,
                "bucket_counts": [1, 2],
                "explicit_bounds": [1.0],
                "attributes": attributes,
            },
        ),
    )
    nested = message.resource_metrics[0].resource.attributes.add(key="list")
    nested.value.array_value.values.add(string_value="x")
    pair = nested.value.array_value.values.add().kvlist_value.values.add(key="k")
    pair.value.int_value = 7
    from_bytes = protobuf_decoding.decode(message.SerializeToString())
    as_json = json_format.MessageToJson(message, use_integers_for_enums=True)
    assert plain(json_decoding.decode(as_json.encode())) == plain(from_bytes)
    assert from_bytes[0].attributes["list"] == '["x", {"k": 7}]'
    assert from_bytes[0].metrics[3].is_delta is False
    assert CUMULATIVE == 2


def deep_bytes(levels: int) -> bytes:
    value = text(1, "x")
    for _ in range(levels):
        value = text(6, text(1, text(1, "k") + text(2, value)))
    return text(1, text(1, text(1, text(1, "a") + text(2, value))))


def deep_json(levels: int) -> bytes:
    value = b'{"arrayValue":{"values":[' * levels + b'{"stringValue":"x"}' + b"]}}" * levels
    return b'{"resourceMetrics":[{"resource":{"attributes":[{"key":"a","value":%s}]}}]}' % value


@pytest.mark.parametrize(
    "body",
    [
        deep_bytes(2000),
        b"\x0a\x05ab",
        text(1, text(2, text(2, text(5, b"\x0a\x7fab")))),
        text(1, text(2, text(2, text(5, b"\x0a")))),
        text(1, text(2, text(2, text(5, text(1, uint(3, 7)))))),
        text(1, text(2, text(2, text(1, b"\xff")))),
    ],
)
def test_hostile_protobuf_is_invalid(body: bytes) -> None:
    with pytest.raises(HttpRejection) as raised:
        protobuf_decoding.decode(body)
    assert raised.value.status == 400


@pytest.mark.parametrize(
    "body",
    [
        text(1, text(2, text(2, text(9, text(1, text(6, b"12345678") + text(7, b"12345678" * 3)))))),
        text(1, text(2, text(2, text(10, text(1, uint(6, 1 << 40)))))),
    ],
)
def test_wrong_buckets_are_a_fault_of_their_point(body: bytes) -> None:
    (resource,) = protobuf_decoding.decode(body)
    (point,) = resource.metrics[0].histograms
    assert (point.fault != "", point.buckets) == (True, {})


@pytest.mark.parametrize(
    "body",
    [
        deep_json(50),
        deep_json(5000),
        b'{"resourceMetrics":[{"resource":{"attributes":[{"key":"a","value":7}]}}]}',
        b'{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"gauge":{"dataPoints":7}}]}]}]}',
        b'{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"sum":{"aggregationTemporality":"DELTA"}}]}]}]}',
    ],
)
def test_hostile_json_is_invalid(body: bytes) -> None:
    with pytest.raises(HttpRejection) as raised:
        json_decoding.decode(body)
    assert raised.value.status == 400


@pytest.mark.parametrize("number", [b"x", b"9" * 5000, b"1e5"])
def test_a_hostile_number_in_json_is_a_fault_of_its_point(number: bytes) -> None:
    points = b'[{"asInt":"%s"},{"asInt":"7"}]' % number
    body = b'{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"gauge":{"dataPoints":%s}}]}]}]}' % points
    (metric,) = json_decoding.decode(body)[0].metrics
    assert [value for *_, value in metric.numbers] == [7.0]
    assert list(metric.faults.values()) == [1]
    assert all(len(fault) < 400 for fault in metric.faults)
