"""Messages of remote write, as senders encode them."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

import cramjam
import httpx

from runvitals.base.protobuf import double, text, uint, varint
from tests.patience import PATIENCE_S

STALE = struct.unpack("<d", struct.pack("<Q", 0x7FF0000000000002))[0]
Series = tuple[Mapping[str, str], Sequence[tuple[int, float]]]
"""Labels, and samples: times in ms UTC and values."""


def sample(t: int, value: float) -> bytes:
    """A sample; zeros are left out, as in Go."""
    return (b"" if value == 0 else double(1, value)) + (uint(2, t) if t else b"")


def version_1(series: Sequence[Series], *more: bytes) -> bytes:
    """A `prometheus.WriteRequest`; `more`: further fields."""
    return b"".join(
        text(
            1,
            b"".join(text(1, text(1, name) + text(2, value)) for name, value in sorted(labels.items()))
            + b"".join(text(2, sample(t, value)) for t, value in samples),
        )
        for labels, samples in series
    ) + b"".join(more)


def version_2(series: Sequence[Series]) -> bytes:
    """An `io.prometheus.write.v2.Request`, with metadata, a created timestamp and an exemplar each."""
    symbols: dict[str, int] = {"": 0}

    def number(symbol: str) -> int:
        return symbols.setdefault(symbol, len(symbols))

    messages = []
    for labels, samples in series:
        refs = b"".join(varint(number(part)) for pair in sorted(labels.items()) for part in pair)
        content = text(1, refs) + b"".join(text(2, sample(t, value)) for t, value in samples)
        exemplar = text(4, double(2, 1.0) + uint(3, 1))
        messages.append(text(5, content + exemplar + text(5, uint(1, 2)) + uint(6, 1_700_000_000_000)))
    return b"".join([*(text(4, symbol) for symbol in symbols), *messages])


def histogram(
    schema: int,
    buckets: Mapping[int, int],
    *,
    total: float,
    t: int,
    negative: Mapping[int, int] | None = None,
    around_zero: int = 0,
    bounds: Sequence[float] = (),
) -> bytes:
    """A native histogram, with the counts of its buckets by their places.

    Args:
        total: the sum of the values.
    """
    below = negative or {}
    count = sum(buckets.values()) + sum(below.values()) + around_zero
    parts = [uint(1, count), double(3, total), uint(4, zigzag(schema)), double(5, 1e-9), uint(6, around_zero)]
    for (spans, deltas), counts in (((8, 9), below), ((11, 12), buckets)):
        bucket_after = last = 0
        packed = b""
        for bucket, number in sorted(counts.items()):
            parts.append(text(spans, uint(1, zigzag(bucket - bucket_after)) + uint(2, 1)))
            packed += varint(zigzag(number - last))
            bucket_after, last = bucket + 1, number
        parts.append(text(deltas, packed))
    packed_bounds = struct.pack(f"<{len(bounds)}d", *bounds)
    return b"".join([*parts, uint(15, t), *([text(16, packed_bounds)] if bounds else [])])


def zigzag(value: int) -> int:
    """A sint32 or sint64."""
    return value << 1 ^ value >> 63


def post(url: str, message: bytes, *, version: int = 1, **headers: str) -> httpx.Response:
    """Send a message."""
    kinds = {1: "application/x-protobuf", 2: "application/x-protobuf;proto=io.prometheus.write.v2.Request"}
    sent = {"content-type": kinds[version], "content-encoding": "snappy", **headers}
    body = bytes(cramjam.snappy.compress_raw(message))
    return httpx.post(f"{url}/api/v1/write", content=body, headers=sent, timeout=PATIENCE_S)
