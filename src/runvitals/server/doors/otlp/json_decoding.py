"""Decodes OTLP's ExportMetricsServiceRequest in JSON.

https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding: 64-bit integers are strings, enums numbers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, TypeVar

import msgspec

from runvitals.server.doors.otlp.message import (
    DELTA,
    HISTOGRAM,
    MAX_RESOURCES,
    NO_VALUE,
    SUM,
    SUMMARY,
    HistogramPoint,
    ItemCount,
    NumberPoint,
    Resource,
    SentMetric,
    SummaryPoint,
    explicit_buckets,
    exponential_buckets,
    too_many_resources,
)
from runvitals.server.http.request_errors import malformed

CONTENT_TYPE: Final = "application/json"
_NAN = float("nan")
_DEPTH = 8
_MAX_DIGITS = 20
_MAX_FAULT = 300
Integer = int | str
Number = float | str


class _Message(msgspec.Struct, rename="camel"):
    pass


class _KeyValue(_Message):
    key: str = ""
    value: dict[str, Any] = {}


class _Point(_Message):
    attributes: list[_KeyValue] = []
    start_time_unix_nano: Integer = 0
    time_unix_nano: Integer = 0
    flags: int = 0


class _NumberPoint(_Point):
    as_double: Number | None = None
    as_int: Integer | None = None


class _Counted(_Point):
    count: Integer = 0
    sum: Number | None = None
    min: Number | None = None
    max: Number | None = None


class _HistogramPoint(_Counted):
    bucket_counts: list[Integer] = []
    explicit_bounds: list[Number] = []


class _Side(_Message):
    offset: int = 0
    bucket_counts: list[Integer] = []


class _ExponentialPoint(_Counted):
    scale: int = 0
    zero_count: Integer = 0
    positive: _Side | None = None
    negative: _Side | None = None


class _Quantile(_Message):
    quantile: Number = 0.0
    value: Number = 0.0


class _SummaryPoint(_Counted):
    quantile_values: list[_Quantile] = []


class _Numbers(_Message):
    data_points: list[msgspec.Raw] = []
    aggregation_temporality: int = 0
    is_monotonic: bool = False


class _Histograms(_Message):
    data_points: list[msgspec.Raw] = []
    aggregation_temporality: int = 0


class _Exponentials(_Message):
    data_points: list[msgspec.Raw] = []
    aggregation_temporality: int = 0


class _Summaries(_Message):
    data_points: list[msgspec.Raw] = []


class _Metric(_Message):
    name: str = ""
    unit: str = ""
    gauge: _Numbers | None = None
    sum: _Numbers | None = None
    histogram: _Histograms | None = None
    exponential_histogram: _Exponentials | None = None
    summary: _Summaries | None = None


class _ScopeMetrics(_Message):
    metrics: list[_Metric] = []


class _Resource(_Message):
    attributes: list[_KeyValue] = []


class _ResourceMetrics(_Message):
    resource: _Resource | None = None
    scope_metrics: list[_ScopeMetrics] = []


class _Request(_Message):
    resource_metrics: list[_ResourceMetrics] = []


_decode = msgspec.json.Decoder(_Request).decode
_number_points = msgspec.json.Decoder(_NumberPoint).decode
_histogram_points = msgspec.json.Decoder(_HistogramPoint).decode
_exponential_points = msgspec.json.Decoder(_ExponentialPoint).decode
_summary_points = msgspec.json.Decoder(_SummaryPoint).decode
_INVALID: Final = (
    msgspec.MsgspecError,
    RecursionError,
    ValueError,
    OverflowError,
    TypeError,
    LookupError,
    AttributeError,
)
Sent = TypeVar("Sent")
Point = TypeVar("Point")


def decode(body: bytes) -> list[Resource]:
    """Return the resources of a request.

    Raises:
        HttpRejection: 400 for an invalid message, 413 for too much in it.
    """
    count = ItemCount()
    if body.count(b'"scopeMetrics"') > MAX_RESOURCES:  # before they are decoded, all at once
        raise too_many_resources()
    try:
        return [_resource(resource, count) for resource in _decode(body).resource_metrics]
    except _INVALID as error:
        raise malformed(f"invalid ExportMetricsServiceRequest: {error}") from None


def _resource(sent: _ResourceMetrics, count: ItemCount) -> Resource:
    count.add_resource()
    attributes = {} if sent.resource is None else dict(_pairs(sent.resource.attributes))
    metrics = [_metric(metric, count) for scope in sent.scope_metrics for metric in scope.metrics]
    return Resource(attributes, metrics, dict)


def _metric(sent: _Metric, count: ItemCount) -> SentMetric:
    count.add()
    metric = SentMetric(sent.name, sent.unit)
    numbers = sent.gauge or sent.sum
    if numbers is not None:
        count.add(len(numbers.data_points))
        metric.kind = "gauge" if sent.gauge is not None else SUM
        metric.is_monotonic, metric.is_delta = numbers.is_monotonic, numbers.aggregation_temporality == DELTA
        metric.numbers = _points(metric, numbers.data_points, _number_points, _number)
    histograms = sent.histogram or sent.exponential_histogram
    if histograms is not None:
        count.add(len(histograms.data_points))
        metric.kind, metric.is_delta = HISTOGRAM, histograms.aggregation_temporality == DELTA
        decode: Callable[[msgspec.Raw], _HistogramPoint | _ExponentialPoint] = (
            _histogram_points if isinstance(histograms, _Histograms) else _exponential_points
        )
        metric.histograms = _points(metric, histograms.data_points, decode, _histogram)
    if sent.summary is not None:
        count.add(len(sent.summary.data_points))
        metric.kind = SUMMARY
        metric.summaries = _points(metric, sent.summary.data_points, _summary_points, _summary)
    return metric


def _points(
    metric: SentMetric,
    sent: Sequence[msgspec.Raw],
    decode: Callable[[msgspec.Raw], Sent],
    convert: Callable[[Sent], Point],
) -> list[Point]:
    """Return the points of a metric; why others cannot be decoded is noted in it."""
    points = []
    for raw in sent:
        try:
            points.append(convert(decode(raw)))
        except _INVALID as error:
            fault = f"invalid: {error}"[:_MAX_FAULT]
            metric.faults[fault] = metric.faults.get(fault, 0) + 1
    return points


def _number(sent: _NumberPoint) -> NumberPoint:
    value = _NAN
    if sent.as_double is not None:
        value = _float(sent.as_double)
    elif sent.as_int is not None:
        value = float(_integer(sent.as_int))
    return (
        _token(sent),
        _integer(sent.start_time_unix_nano),
        _integer(sent.time_unix_nano),
        _NAN if sent.flags & NO_VALUE else value,
    )


def _histogram(sent: _HistogramPoint | _ExponentialPoint) -> HistogramPoint:
    if isinstance(sent, _HistogramPoint):
        bounds, counts = [_float(bound) for bound in sent.explicit_bounds], _integers(sent.bucket_counts)
        buckets = explicit_buckets(bounds, counts)
    else:
        zeros = _integer(sent.zero_count)
        buckets = exponential_buckets(sent.scale, zeros, _side(sent.positive), _side(sent.negative))
    return HistogramPoint(
        _token(sent),
        _integer(sent.start_time_unix_nano),
        _integer(sent.time_unix_nano),
        None if sent.flags & NO_VALUE else _integer(sent.count),
        None if sent.sum is None else _float(sent.sum),
        None if sent.min is None else _float(sent.min),
        None if sent.max is None else _float(sent.max),
        *buckets,
    )


def _summary(sent: _SummaryPoint) -> SummaryPoint:
    return SummaryPoint(
        _token(sent),
        _integer(sent.start_time_unix_nano),
        _integer(sent.time_unix_nano),
        None if sent.flags & NO_VALUE else _integer(sent.count),
        0.0 if sent.sum is None else _float(sent.sum),
        {_float(quantile.quantile): _float(quantile.value) for quantile in sent.quantile_values},
    )


def _side(sent: _Side | None) -> tuple[int, list[int]]:
    return (0, []) if sent is None else (sent.offset, _integers(sent.bucket_counts))


def _token(sent: _Point) -> Hashable:
    return tuple(_pairs(sent.attributes))


def _pairs(sent: list[_KeyValue]) -> list[tuple[str, str]]:
    return [(pair.key, _text(_value(pair.value, 0))) for pair in sent]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _value(sent: Any, depth: int) -> Any:
    """Return an AnyValue as plain JSON."""
    if depth > _DEPTH:
        raise ValueError(f"attributes are nested more than {_DEPTH} deep")
    if not isinstance(sent, dict):
        raise ValueError(f"invalid value {str(sent)[:60]!r} of an attribute; expected an object")
    for name, value in sent.items():
        if name == "intValue":
            return _integer(value)
        if name == "doubleValue":
            return _float(value)
        if name == "arrayValue":
            return [_value(item, depth + 1) for item in value.get("values", ())]
        if name == "kvlistValue":
            return {pair["key"]: _value(pair["value"], depth + 1) for pair in value.get("values", ())}
        if name in ("stringValue", "boolValue", "bytesValue"):
            return value
    return ""


def _float(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"invalid number {str(value)[:60]!r}; expected a JSON number") from None


def _integer(value: Any) -> int:
    if isinstance(value, str) and len(value) > _MAX_DIGITS:
        raise ValueError(f"invalid integer of {len(value)} characters")
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"invalid integer {value!r}; expected digits") from None
    if not -(2**63) <= number < 2**64:
        raise ValueError(f"invalid integer {number}; expected 64 bits")
    return number


def _integers(values: list[Integer]) -> list[int]:
    return [_integer(value) for value in values]
