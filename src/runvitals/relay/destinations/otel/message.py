"""Encodes OTLP's ExportMetricsServiceRequest as protocol buffers and as JSON.

https://github.com/open-telemetry/opentelemetry-proto/blob/main/opentelemetry/proto/metrics/v1/metrics.proto
https://opentelemetry.io/docs/specs/otlp/
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import isfinite, isnan
from typing import Any

from runvitals.base.json_codec import dumps, loads
from runvitals.base.protobuf import fixed64, text, uint, varint
from runvitals.model.metrics.prometheus import Labels, MetricFamily
from runvitals.relay.timeseries.batch_series import SeriesPoints
from runvitals.version import __version__

Resource = Mapping[str, str | int]
SCOPE = "runvitals"
_CUMULATIVE = 2
_NO_VALUE = 1  # a flag: the series ends or has a gap
_TIME, _VALUE = b"\x19", b"\x21"  # fields 3 and 4, 8 bytes each
_NS_PER_MS = 1_000_000
_MAX_CACHED = 100_000


def metrics(lines: Sequence[SeriesPoints]) -> Iterator[tuple[MetricFamily, list[SeriesPoints]]]:
    """Yield series grouped by instrument."""
    by_name: dict[str, tuple[MetricFamily, list[SeriesPoints]]] = {}
    for line in lines:
        by_name.setdefault(line.series.family.name, (line.series.family, []))[1].append(line)
    yield from by_name.values()


class Protobuf:
    """The message as protocol buffers. Takes 0.3 µs per point."""

    content_type = "application/x-protobuf"

    def message(self, resource: Resource, lines: Sequence[SeriesPoints]) -> bytes:
        """Return an ExportMetricsServiceRequest in protocol buffers."""
        times: dict[int, bytes] = {}
        about = b"".join(_attribute(1, name, value) for name, value in resource.items())
        scope = text(1, text(1, SCOPE) + text(2, __version__))
        encoded = [text(2, _metric(family, members, times)) for family, members in metrics(lines)]
        return text(1, text(1, about) + text(2, scope + b"".join(encoded)))

    def partial_success(self, body: bytes) -> tuple[int, str]:
        """Return how many points a response rejects, and why.

        Example:
            >>> Protobuf().partial_success(bytes.fromhex("0a0708031203626164"))
            (3, 'bad')
        """
        rejected, why = 0, ""
        for number, value in _fields(dict(_fields(body)).get(1, b"")):
            if number == 1 and isinstance(value, int):
                rejected = value
            elif number == 2 and isinstance(value, bytes):
                why = value.decode("utf-8", "replace")
        return rejected, why


def _attribute(number: int, name: str, value: str | int) -> bytes:
    encoded = text(1, value) if isinstance(value, str) else uint(3, value)
    return text(number, text(1, name) + text(2, encoded))


def _metric(family: MetricFamily, lines: list[SeriesPoints], times: dict[int, bytes]) -> bytes:
    points = b"".join([_points(line, times) for line in lines])
    about = _about(family)
    if family.kind == "gauge":
        return about + text(5, points)
    return about + text(7, points + uint(2, _CUMULATIVE) + uint(3, int(family.kind == "counter")))


@lru_cache(_MAX_CACHED)
def _about(family: MetricFamily) -> bytes:
    return text(1, family.name) + text(2, family.help) + text(3, family.unit)


@lru_cache(_MAX_CACHED)
def _same(labels: Labels, start_ms: int) -> bytes:
    """Return the fields that all points of a series have in common."""
    start = fixed64(2, start_ms * _NS_PER_MS) if start_ms else b""
    return b"".join(_attribute(7, name, value) for name, value in labels) + start


def _points(line: SeriesPoints, times: dict[int, bytes]) -> bytes:
    """Return the points, each as field 1."""
    same = _same(line.series.labels, line.start_ms)
    full = b"\x0a" + varint(len(same) + 18) + same + _TIME
    none = b"\x0a" + varint(len(same) + 11) + same + _TIME
    flags = uint(8, _NO_VALUE)
    pack = struct.Struct("<d").pack
    parts: list[bytes] = []
    for time_ms, value in zip(line.times_ms, line.values, strict=True):
        moment = times.get(time_ms)
        if moment is None:
            moment = times[time_ms] = struct.pack("<Q", time_ms * _NS_PER_MS)
        if value is None:
            parts += (none, moment, flags)
        else:
            parts += (full, moment, _VALUE, pack(value))
    return b"".join(parts)


def _fields(data: object) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a small message; stops at damaged data."""
    if not isinstance(data, bytes):
        return
    position = 0

    def number() -> int:
        nonlocal position
        value = shift = 0
        while position < len(data):
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        return value

    while position < len(data):
        tag = number()
        if tag & 7 == 0:
            yield tag >> 3, number()
        elif tag & 7 == 2:
            size = number()
            yield tag >> 3, data[position : position + size]
            position += size
        else:
            return


class Json:
    """The message as JSON."""

    content_type = "application/json"

    def message(self, resource: Resource, lines: Sequence[SeriesPoints]) -> bytes:
        """Return an ExportMetricsServiceRequest in JSON."""
        scope = {"scope": {"name": SCOPE, "version": __version__}}
        encoded = [self._metric(family, members) for family, members in metrics(lines)]
        about = {"attributes": [_pair(name, value) for name, value in resource.items()]}
        return dumps(
            {"resourceMetrics": [{"resource": about, "scopeMetrics": [{**scope, "metrics": encoded}]}]}
        )

    def partial_success(self, body: bytes) -> tuple[int, str]:
        """Return how many points a response rejects, and why."""
        try:
            partial = loads(body).get("partialSuccess") or {}
            return int(partial.get("rejectedDataPoints") or 0), str(partial.get("errorMessage") or "")
        except (ValueError, AttributeError, TypeError, OverflowError):
            return 0, ""  # the server accepted the request, even if its response cannot be read

    def _metric(self, family: MetricFamily, lines: list[SeriesPoints]) -> dict[str, Any]:
        data: dict[str, Any] = {"dataPoints": [point for line in lines for point in self._points(line)]}
        about = {"name": family.name, "description": family.help, "unit": family.unit}
        if family.kind == "gauge":
            return {**about, "gauge": data}
        counts = {"aggregationTemporality": _CUMULATIVE, "isMonotonic": family.kind == "counter"}
        return {**about, "sum": {**data, **counts}}

    def _points(self, line: SeriesPoints) -> Iterator[dict[str, Any]]:
        same: dict[str, Any] = {"attributes": _pairs(line.series.labels)}
        if line.start_ms:
            same["startTimeUnixNano"] = str(line.start_ms * _NS_PER_MS)
        for time_ms, value in zip(line.times_ms, line.values, strict=True):
            point_value = {"flags": _NO_VALUE} if value is None else {"asDouble": _number(value)}
            yield {**same, "timeUnixNano": str(time_ms * _NS_PER_MS), **point_value}


def _pairs(labels: Labels) -> list[dict[str, Any]]:
    return [_pair(name, value) for name, value in labels]


def _pair(name: str, value: str | int) -> dict[str, Any]:
    encoded = {"stringValue": value} if isinstance(value, str) else {"intValue": str(value)}
    return {"key": name, "value": encoded}


def _number(value: float) -> float | str:
    """Return a number; NaN and infinities are strings in the JSON of protocol buffers."""
    if isfinite(value):
        return value
    return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
