"""Protocol buffers' wire format, written: what TensorBoard, remote write and OTLP speak.

A message is the concatenation of its fields; each function makes one field, tag and all. Nested messages are
`text(number, message)`.

https://protobuf.dev/programming-guides/encoding/

Example:
    >>> uint(1, 150) + text(2, "testing")
    b'\\x08\\x96\\x01\\x12\\x07testing'
"""

from __future__ import annotations

import struct

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_HIGHEST_FLOAT = 3.4028235677973366e38  # half a step above the largest: rounds to infinity
_UINT64 = (1 << 64) - 1


def varint(value: int) -> bytes:
    """A number of 64 bits, in 1 to 10 bytes; a negative one in 10, as its two's complement."""
    value &= _UINT64
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def uint(number: int, value: int) -> bytes:
    """A field of type int32, int64, uint32, uint64, bool or enum."""
    return varint(number << 3 | _VARINT) + varint(value)


def sint(number: int, value: int) -> bytes:
    """A field of type sint32 or sint64."""
    return uint(number, value << 1 if value >= 0 else (-value << 1) - 1)


def text(number: int, value: str | bytes) -> bytes:
    """A field of type string, bytes, a message, or packed numbers. Lone surrogates become question marks."""
    data = value.encode("utf-8", "replace") if isinstance(value, str) else value
    return varint(number << 3 | _LENGTH) + varint(len(data)) + data


def double(number: int, value: float) -> bytes:
    """A field of type double."""
    return varint(number << 3 | _FIXED64) + struct.pack("<d", value)


def single(number: int, value: float) -> bytes:
    """A field of type float; what is too large for one becomes infinite."""
    if abs(value) >= _HIGHEST_FLOAT:
        value = float("inf") if value > 0 else float("-inf") if value < 0 else value
    return varint(number << 3 | _FIXED32) + struct.pack("<f", value)


def fixed64(number: int, value: int) -> bytes:
    """A field of type fixed64."""
    return varint(number << 3 | _FIXED64) + struct.pack("<Q", value)
