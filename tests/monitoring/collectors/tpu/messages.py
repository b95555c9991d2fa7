"""Encodes messages of the runtime's metric service."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence

from runvitals.base.protobuf import text, varint


def nested(number: int, *parts: bytes) -> bytes:
    """A field with a message or bytes."""
    data = b"".join(parts)
    return varint(number << 3 | 2) + varint(len(data)) + data


def whole(number: int, value: int) -> bytes:
    """A field with an integer."""
    return varint(number << 3) + varint(value & (1 << 64) - 1)


def double(number: int, value: float) -> bytes:
    return varint(number << 3 | 1) + struct.pack("<d", value)


def scalar(value: str | float | bool) -> bytes:
    """A value of an attribute."""
    if isinstance(value, str):
        return text(1, value)
    if isinstance(value, bool):
        return whole(2, value)
    return whole(3, value) if isinstance(value, int) else double(4, value)


def labels(attributes: Mapping[str, str | float]) -> bytes:
    """The attribute of a reading: one key, or a list of several."""
    attributes = [nested(1, text(1, key), nested(2, scalar(value))) for key, value in attributes.items()]
    if len(attributes) == 1:
        return attributes[0]
    return nested(1, text(1, "attributes"), nested(2, nested(6, *attributes)))


def gauge(attributes: Mapping[str, str | float], value: float) -> bytes:
    """One reading: an integer, or a float."""
    number = whole(2, value) if isinstance(value, int) else double(1, value)
    return nested(3, labels(attributes), nested(2, whole(1, 1793000000)), nested(3, number))


def exponential(growth: float, scale: float, size: int) -> bytes:
    return nested(6, nested(2, whole(1, size), double(2, growth), double(3, scale)))


def distribution(
    attributes: Mapping[str, str | float],
    counts: Sequence[int],
    mean: float,
    options: bytes,
    largest: float = 0.0,
) -> bytes:
    """One reading with a distribution, as the runtime encodes it."""
    parts = [whole(1, sum(counts)), double(2, mean), double(4, largest), options]
    packed = b"".join(varint(count) for count in counts)
    return nested(3, labels(attributes), nested(5, *parts, nested(7, packed)))


def metric(name: str, readings: Iterable[bytes]) -> bytes:
    """The response of GetRuntimeMetric."""
    return nested(1, text(1, name), text(2, "A text."), *readings)


def supported(names: Iterable[str]) -> bytes:
    """The response of ListSupportedMetrics."""
    return b"".join(nested(1, text(1, name)) for name in names)
