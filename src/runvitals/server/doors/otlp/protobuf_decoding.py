"""Decodes OTLP's ExportMetricsServiceRequest in protocol buffers.

A point of a gauge or sum takes 1 µs where its fields are in the order of their numbers, as all known senders
write them: two structs read times and value, and the rest, its attributes, stays encoded.

https://github.com/open-telemetry/opentelemetry-proto/blob/main/opentelemetry/proto/metrics/v1/metrics.proto
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from runvitals.base.protobuf import (
    LENGTH,
    VARINT,
    Malformed,
    fields,
    read_double,
    read_doubles,
    read_varint,
    to_signed,
    unzigzag,
)
from runvitals.server.doors.otlp.message import (
    DELTA,
    HISTOGRAM,
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
)
from runvitals.server.doors.otlp.request_templates import RequestTemplates
from runvitals.server.http.request_errors import malformed

CONTENT_TYPE: Final = "application/x-protobuf"
_templates: Final = RequestTemplates()
_NAN = float("nan")
_DEPTH = 8
_SHORT_BYTES = 1024
"""Attributes up to this size are kept decoded. Usual ones have about 200 bytes."""
_GAUGE_SUM: Final = {5: "gauge", 7: SUM}
# Tag and value of start_time_unix_nano (2), time_unix_nano (3), and as_double (4) or as_int (6).
_TIMED_DOUBLE, _TIMED_INT = (struct.Struct(text).unpack_from for text in ("<xQxd", "<xQxq"))
_STARTED_DOUBLE, _STARTED_INT = (struct.Struct(text).unpack_from for text in ("<xQxQxd", "<xQxQxq"))
_POINT, _START, _TIME, _DOUBLE, _INT, _ATTRIBUTES, _FLAGS = 0x0A, 0x11, 0x19, 0x21, 0x31, 0x3A, 0x40
_TIMED_BYTES, _STARTED_BYTES = 18, 27


def decode(body: bytes) -> list[Resource]:
    """Return the resources of a request.

    Raises:
        HttpRejection: 400 for an invalid message, 413 for too much in it.
    """
    decoded = _templates.read(body)
    if decoded is not None:
        return decoded
    count = ItemCount()
    try:
        resources = [_resource(value, count) for value in _messages(body, 1)]
    except (Malformed, UnicodeDecodeError, struct.error) as error:
        raise malformed(f"invalid ExportMetricsServiceRequest: {error}") from None
    _templates.add(body, resources)
    return resources


def attributes(encoded: bytes) -> dict[str, str]:
    """Return a point's attributes (field 7) and flags (field 8), or raise Malformed."""
    return _short_attributes(encoded) if len(encoded) <= _SHORT_BYTES else _attributes(encoded)


@lru_cache(65_536)
def _short_attributes(encoded: bytes) -> dict[str, str]:
    return _attributes(encoded)


def _attributes(encoded: bytes) -> dict[str, str]:
    return dict(_pair(value) for value in _messages(encoded, 7))


def _resource(message: bytes, count: ItemCount) -> Resource:
    count.add_resource()
    resource = Resource({}, [], attributes)
    for number, kind, value in fields(message):
        if kind != LENGTH or not isinstance(value, bytes):
            continue
        if number == 1:
            resource.attributes |= dict(_pair(pair) for pair in _messages(value, 1))
        elif number == 2:
            resource.metrics += [_metric(metric, count) for metric in _messages(value, 2)]
    return resource


def _metric(message: bytes, count: ItemCount) -> SentMetric:
    count.add()
    metric = SentMetric()
    for number, kind, value in fields(message):
        if kind != LENGTH or not isinstance(value, bytes):
            continue
        if number == 1:
            metric.name = value.decode("utf-8")
        elif number == 3:
            metric.unit = value.decode("utf-8")
        elif number in _GAUGE_SUM:
            metric.kind = SUM if number == 7 else "gauge"
            metric.numbers = _numbers(metric, value, count)
        elif number in (9, 10):
            metric.kind = HISTOGRAM
            _aggregation(metric, value)
            decode_point = _histogram if number == 9 else _exponential
            for point in _messages(value, 1):
                count.add(1 + len(point) // 64)
                metric.histograms.append(decode_point(point))
        elif number == 11:
            metric.kind = SUMMARY
            for point in _messages(value, 1):
                count.add(1 + len(point) // 64)
                metric.summaries.append(_summary(point))
    return metric


def _aggregation(metric: SentMetric, message: bytes) -> None:
    """Set temporality and monotony, fields 2 and 3 of a sum or histogram."""
    for number, kind, value in fields(message):
        if kind == VARINT and number == 2:
            metric.is_delta = value == DELTA
        elif kind == VARINT and number == 3:
            metric.is_monotonic = bool(value)


def _numbers(metric: SentMetric, message: bytes, count: ItemCount) -> list[NumberPoint]:
    """Return the points of a gauge or sum, its fields 1.

    The fields after them are those of `_aggregation`.
    """
    points: list[NumberPoint] = []
    at, end, most = 0, len(message), count.left
    while at < end:
        if message[at] != _POINT:  # rare, and once for each metric
            rest, at = message[at:], end
            _aggregation(metric, rest)
            points += [_number(point) for point in _messages(rest, 1)]
            break
        at += 2
        size = message[at - 1] if at <= end else 0x80
        if size >= 0x80:
            size, at = read_varint(message, at - 1)
        stop = at + size
        if stop > end or len(points) > most:
            break
        point = None
        if size >= _STARTED_BYTES and message[at] == _START and message[at + 9] == _TIME:
            kind, after = message[at + 18], at + _STARTED_BYTES
            if kind == _DOUBLE:
                point = _STARTED_DOUBLE(message, at)
            elif kind == _INT:
                started, time, integer = _STARTED_INT(message, at)
                point = started, time, float(integer)
        elif size >= _TIMED_BYTES and message[at] == _TIME:
            kind, after = message[at + 9], at + _TIMED_BYTES
            if kind == _DOUBLE:
                point = 0, *_TIMED_DOUBLE(message, at)
            elif kind == _INT:
                time, integer = _TIMED_INT(message, at)
                point = 0, time, float(integer)
        # Flags, two bytes at the end, are rare. The same bytes may also be a part of an attribute's value.
        if point is None or (after < stop and (message[after] != _ATTRIBUTES or message[stop - 2] == _FLAGS)):
            points.append(_number(message[at:stop]))
        else:
            points.append((message[after:stop], *point))
        at = stop
    count.add(len(points))
    if at != end:
        raise Malformed(f"a point ends at byte {stop} of {end}")
    return points


def _number(message: bytes) -> NumberPoint:
    start = time = flags = 0
    number = _NAN
    rest: list[bytes] = []
    for field_number, kind, value in fields(message):
        if field_number == 2:
            start = _uint64(value)
        elif field_number == 3:
            time = _uint64(value)
        elif field_number == 4:
            number = read_double(_eight(value))
        elif field_number == 6:
            number = float(_sint64(value))
        elif field_number == 7 and kind == LENGTH and isinstance(value, bytes):
            rest.append(b"\x3a" + _size(value) + value)
        elif field_number == 8 and isinstance(value, int):
            flags = value
    return b"".join(rest), start, time, _NAN if flags & NO_VALUE else number


def _histogram(message: bytes) -> HistogramPoint:
    start = time = count = flags = 0
    total = low = high = None
    rest: list[bytes] = []
    counts: list[int] = []
    bounds: list[float] = []
    for number, kind, value in fields(message):
        if number == 2:
            start = _uint64(value)
        elif number == 3:
            time = _uint64(value)
        elif number == 4:
            count = _uint64(value)
        elif number == 5:
            total = read_double(_eight(value))
        elif number == 6:
            counts += _uint64s(value)
        elif number == 7 and isinstance(value, bytes):
            bounds += read_doubles(value)
        elif number == 9 and kind == LENGTH and isinstance(value, bytes):
            rest.append(b"\x3a" + _size(value) + value)
        elif number == 10 and isinstance(value, int):
            flags = value
        elif number == 11:
            low = read_double(_eight(value))
        elif number == 12:
            high = read_double(_eight(value))
    observations = None if flags & NO_VALUE else count
    buckets = explicit_buckets(bounds, counts)
    return HistogramPoint(b"".join(rest), start, time, observations, total, low, high, *buckets)


def _exponential(message: bytes) -> HistogramPoint:
    start = time = count = flags = scale = zeros = 0
    total = low = high = None
    rest: list[bytes] = []
    sides: dict[int, tuple[int, list[int]]] = {8: (0, []), 9: (0, [])}
    for number, kind, value in fields(message):
        if number == 1 and kind == LENGTH and isinstance(value, bytes):
            rest.append(b"\x3a" + _size(value) + value)
        elif number == 2:
            start = _uint64(value)
        elif number == 3:
            time = _uint64(value)
        elif number == 4:
            count = _uint64(value)
        elif number == 5:
            total = read_double(_eight(value))
        elif number == 6 and isinstance(value, int):
            scale = unzigzag(value)
        elif number == 7:
            zeros = _uint64(value)
        elif number in sides and isinstance(value, bytes):
            sides[number] = _side(value)
        elif number == 10 and isinstance(value, int):
            flags = value
        elif number == 12:
            low = read_double(_eight(value))
        elif number == 13:
            high = read_double(_eight(value))
    observations = None if flags & NO_VALUE else count
    buckets = exponential_buckets(scale, zeros, sides[8], sides[9])
    return HistogramPoint(b"".join(rest), start, time, observations, total, low, high, *buckets)


def _side(message: bytes) -> tuple[int, list[int]]:
    """Return the positive or negative buckets: the number of the first one, and the counts."""
    offset = 0
    counts: list[int] = []
    for number, kind, value in fields(message):
        if number == 1 and isinstance(value, int):
            offset = unzigzag(value)
        elif number == 2 and isinstance(value, int):
            counts.append(value)
        elif number == 2 and kind == LENGTH and isinstance(value, bytes):
            at = 0
            while at < len(value):
                bucket_count, at = read_varint(value, at)
                counts.append(bucket_count)
    return offset, counts


def _summary(message: bytes) -> SummaryPoint:
    start = time = count = flags = 0
    total = 0.0
    rest: list[bytes] = []
    quantiles: dict[float, float] = {}
    for number, kind, value in fields(message):
        if number == 2:
            start = _uint64(value)
        elif number == 3:
            time = _uint64(value)
        elif number == 4:
            count = _uint64(value)
        elif number == 5:
            total = read_double(_eight(value))
        elif number == 6 and isinstance(value, bytes):
            pair = {n: read_double(_eight(v)) for n, _, v in fields(value)}
            quantiles[pair.get(1, 0.0)] = pair.get(2, 0.0)
        elif number == 7 and kind == LENGTH and isinstance(value, bytes):
            rest.append(b"\x3a" + _size(value) + value)
        elif number == 8 and isinstance(value, int):
            flags = value
    return SummaryPoint(b"".join(rest), start, time, None if flags & NO_VALUE else count, total, quantiles)


def _messages(message: bytes, field_number: int) -> Iterator[bytes]:
    """Yield the nested messages in a field."""
    for number, kind, value in fields(message):
        if number == field_number:
            if kind != LENGTH or not isinstance(value, bytes):
                raise Malformed(f"field {number} is no message")
            yield value


def _pair(message: bytes) -> tuple[str, str]:
    """Return a KeyValue, its value as a text."""
    key, value = _key_value(message, 0)
    return key, value if isinstance(value, str) else json.dumps(value)


def _key_value(message: bytes, depth: int) -> tuple[str, Any]:
    key, result = "", ""
    for number, _, value in fields(message):
        if number == 1 and isinstance(value, bytes):
            key = value.decode("utf-8")
        elif number == 2 and isinstance(value, bytes):
            result = _value(value, depth)
    return key, result


def _value(message: bytes, depth: int) -> Any:
    """Return an AnyValue, as JSON has it."""
    if depth > _DEPTH:
        raise Malformed(f"attributes are nested more than {_DEPTH} deep")
    result: Any = ""
    for number, _, value in fields(message):
        if number == 2:
            result = bool(value)
        elif number == 3 and isinstance(value, int):
            result = to_signed(value)
        elif number == 4:
            result = read_double(_eight(value))
        elif isinstance(value, bytes):
            if number == 1:
                result = value.decode("utf-8")
            elif number == 5:
                result = [_value(item, depth + 1) for item in _messages(value, 1)]
            elif number == 6:
                result = dict(_key_value(item, depth + 1) for item in _messages(value, 1))
            elif number == 7:
                result = value.hex()
    return result


def _eight(value: int | bytes) -> bytes:
    if not isinstance(value, bytes) or len(value) != 8:
        raise Malformed("expected a number of 8 bytes")
    return value


def _uint64(value: int | bytes) -> int:
    return int.from_bytes(_eight(value), "little")


def _sint64(value: int | bytes) -> int:
    return int.from_bytes(_eight(value), "little", signed=True)


def _uint64s(value: int | bytes) -> list[int]:
    """Return packed numbers of type fixed64."""
    if not isinstance(value, bytes) or len(value) % 8:
        raise Malformed("expected numbers of 8 bytes each")
    return list(struct.unpack(f"<{len(value) // 8}Q", value))


def _size(value: bytes) -> bytes:
    size, out = len(value), bytearray()
    while size >= 0x80:
        out.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes((*out, size))
