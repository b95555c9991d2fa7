"""Encodes the messages of Prometheus remote write, 1.0 and 2.0.

https://prometheus.io/docs/specs/prw/remote_write_spec/
https://prometheus.io/docs/specs/prw/remote_write_spec_2_0/
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterable, Sequence
from functools import lru_cache

from runvitals.base.protobuf import text, uint, varint
from runvitals.model.metrics.prometheus import MetricFamily
from runvitals.relay.timeseries.batch_series import SeriesPoints, Values
from runvitals.relay.timeseries.naming import LabeledSeries

# Prometheus' stale marker: a NaN that marks the end of a series.
STALE = struct.pack("<Q", 0x7FF0000000000002)
_KINDS = {"counter": 1, "gauge": 2, "info": 6}
_VALUE = b"\x09"  # field 1, 8 bytes
_MAX_CACHED = 100_000


class Version1:
    """prometheus.WriteRequest. A family's metadata are sent with the first request that has the family."""

    headers = {
        "Content-Type": "application/x-protobuf",
        "X-Prometheus-Remote-Write-Version": "0.1.0",
    }

    def __init__(self) -> None:
        self._labels: dict[LabeledSeries, bytes] = {}
        self._described: set[str] = set()

    def message(self, lines: Sequence[SeriesPoints]) -> bytes:
        """Return a write request, with the metadata of metrics that were not sent before."""
        times = _SampleTimes()
        series = [text(1, self._of(line.series) + times.samples(line, 0)) for line in lines]
        families = {line.series.family.sample: line.series.family for line in lines}
        new = [family for name, family in families.items() if name not in self._described]
        self._described.update(families)
        return b"".join(series) + b"".join(map(_description, new))

    def forget(self) -> None:
        """Send all metadata again with the next request: the last one may not have arrived."""
        self._described.clear()

    def _of(self, series: LabeledSeries) -> bytes:
        labels = self._labels.get(series)
        if labels is None:
            if len(self._labels) >= _MAX_CACHED:
                self._labels.clear()
            pairs = _labels(series)
            labels = self._labels[series] = b"".join(
                text(1, text(1, name) + text(2, value)) for name, value in pairs
            )
        return labels


class Version2:
    """io.prometheus.write.v2.Request, as of 2.0-rc.4.

    Interned strings, metadata with each series, and the start time of counters with each sample.
    """

    headers = {
        "Content-Type": "application/x-protobuf;proto=io.prometheus.write.v2.Request",
        "X-Prometheus-Remote-Write-Version": "2.0.0",
    }

    def message(self, lines: Sequence[SeriesPoints]) -> bytes:
        """Return a write request with its own table of strings."""
        times = _SampleTimes()
        symbols: dict[str, int] = {"": 0}

        def number(symbol: str) -> int:
            return symbols.setdefault(symbol, len(symbols))

        series = []
        for line in lines:
            refs = b"".join([varint(number(symbol)) for pair in _labels(line.series) for symbol in pair])
            family = line.series.family
            about = uint(1, _KINDS[family.kind]) + uint(3, number(family.help)) + uint(4, number(family.unit))
            series.append(text(5, text(1, refs) + times.samples(line, line.start_ms) + text(5, about)))
        return b"".join([*(text(4, symbol) for symbol in symbols), *series])

    def forget(self) -> None:
        """Do nothing: each request is complete in itself."""


@lru_cache(_MAX_CACHED)
def _labels(series: LabeledSeries) -> list[tuple[str, str]]:
    """Return all labels, sorted by name."""
    return sorted([("__name__", series.family.sample), *series.labels])


def _description(family: MetricFamily) -> bytes:
    about = uint(1, _KINDS[family.kind]) + text(2, family.sample) + text(4, family.help)
    return text(3, about + text(5, family.unit))


class _SampleTimes:
    """The bytes around the values of samples, which are the same for all series of a batch."""

    def __init__(self) -> None:
        self._encoded_times: dict[tuple[int, int], tuple[bytes, bytes]] = {}
        self._lists: dict[tuple[int, int], list[tuple[bytes, bytes]]] = {}

    def samples(self, line: SeriesPoints, start_ms: int) -> bytes:
        """Return the points of a series, each as field 2: value, time, and the start time if there is one."""
        key = (id(line.times_ms), start_ms)
        around = self._lists.get(key)
        if around is None:
            around = self._lists[key] = [self._around(time_ms, start_ms) for time_ms in line.times_ms]
        parts: list[bytes] = []
        for (before, after), value in zip(around, _pack(line.values), strict=True):
            parts += (before, value, after)
        return b"".join(parts)

    def _around(self, time_ms: int, start_ms: int) -> tuple[bytes, bytes]:
        times = self._encoded_times.get((time_ms, start_ms))
        if times is None:
            after = uint(2, time_ms) + (uint(3, start_ms) if start_ms else b"")
            before = b"\x12" + varint(len(_VALUE) + 8 + len(after)) + _VALUE
            times = self._encoded_times[time_ms, start_ms] = (before, after)
        return times


def _pack(values: Values) -> Iterable[bytes]:
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values):
        return [STALE if value is None else struct.pack("<d", value) for value in values]
    flat = array("d", numbers)
    if sys.byteorder == "big":
        flat.byteswap()
    packed = flat.tobytes()
    return [packed[i : i + 8] for i in range(0, len(packed), 8)]
