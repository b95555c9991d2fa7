r"""Reads and writes the protocol buffers wire format, for TensorBoard, remote write, OTLP and W&B files.

A message is the concatenation of its fields. To write one, `uint`, `text`, `double` … each return a field
including its tag; nested messages are `text(number, message)`. To read one, `fields` yields its fields; the
reader has to know what the field numbers mean.

https://protobuf.dev/programming-guides/encoding/

Example:
    >>> uint(1, 150) + text(2, "testing")
    b'\x08\x96\x01\x12\x07testing'
    >>> list(fields(_))
    [(1, 0, 150), (2, 2, b'testing')]
"""

from __future__ import annotations

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_HIGHEST_FLOAT = 3.4028235677973366e38  # half a step above the largest: rounds to infinity
_UINT64 = (1 << 64) - 1


def varint(value: int) -> bytes:
    """Return a 64-bit integer in 1 to 10 bytes; a negative one in 10, as its two's complement."""
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
    """Return a field of type int32, int64, uint32, uint64, bool or enum."""
    return varint(number << 3 | VARINT) + varint(value)


def text(number: int, value: str | bytes) -> bytes:
    """Return a field of type string, bytes, a message, or packed numbers.

    Lone surrogates become question marks.
    """
    data = value.encode("utf-8", "replace") if isinstance(value, str) else value
    return varint(number << 3 | LENGTH) + varint(len(data)) + data


def double(number: int, value: float) -> bytes:
    """Return a field of type double."""
    return varint(number << 3 | FIXED64) + struct.pack("<d", value)


def single(number: int, value: float) -> bytes:
    """Return a field of type float; values that are too large become infinite."""
    if abs(value) >= _HIGHEST_FLOAT:
        value = float("inf") if value > 0 else float("-inf") if value < 0 else value
    return varint(number << 3 | FIXED32) + struct.pack("<f", value)


def fixed64(number: int, value: int) -> bytes:
    """Return a field of type fixed64."""
    return varint(number << 3 | FIXED64) + struct.pack("<Q", value)


class Malformed(ValueError):
    """Invalid message; the text says where."""


def fields(message: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Yield the fields of a message in order, including unknown ones: (number, kind, value). 1 µs per field.

    A value is an int for kind `VARINT`, else bytes: 8, 4, or any number (strings, bytes, messages, packed
    numbers).

    Raises:
        Malformed: truncated, or of a deprecated kind (groups).
    """
    at, end = 0, len(message)
    while at < end:
        tag = message[at]
        if tag < 0x80:  # nearly all tags and lengths
            at += 1
        else:
            tag, at = read_varint(message, at)
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise Malformed(f"field number 0 before byte {at}")
        if kind == VARINT:
            value, at = read_varint(message, at)
            yield number, kind, value
            continue
        if kind == LENGTH:
            if at < end and message[at] < 0x80:
                size, at = message[at], at + 1
            else:
                size, at = read_varint(message, at)
        elif kind in (FIXED32, FIXED64):
            size = 4 if kind == FIXED32 else 8
        else:
            raise Malformed(f"wire type {kind} of field {number} before byte {at}")
        if at + size > end:
            raise Malformed(f"field {number} ends at byte {at + size} of {end}")
        yield number, kind, message[at : at + size]
        at += size


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """(the unsigned number at a byte offset, the offset after it).

    Raises:
        Malformed: truncated, or longer than 10 bytes.
    """
    value = shift = 0
    for position in range(at, min(at + 10, len(data))):
        byte = data[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _UINT64, position + 1
        shift += 7
    raise Malformed(f"no number at byte {at} of {len(data)}")


def to_signed(value: int) -> int:
    """Return a varint of type int32 or int64.

    >>> to_signed(0xFFFFFFFFFFFFFFFF)
    -1
    """
    return value - (1 << 64) if value >> 63 else value


def unzigzag(value: int) -> int:
    """Return a varint of type sint32 or sint64."""
    return value >> 1 ^ -(value & 1)


def read_double(eight: bytes) -> float:
    """Eight bytes of type double."""
    value: float = struct.unpack("<d", eight)[0]
    return value


def read_doubles(packed: bytes) -> list[float]:
    """Return a packed list of type double; raise Malformed unless it has a multiple of 8 bytes."""
    if len(packed) % 8:
        raise Malformed(f"{len(packed)} bytes of doubles")
    return list(struct.unpack(f"<{len(packed) // 8}d", packed))


def read_varints(packed: bytes) -> list[int]:
    """Return a packed list of type int32 or int64.

    Raises:
        Malformed: truncated.
    """
    numbers = []
    at = 0
    while at < len(packed):
        number, at = read_varint(packed, at)
        numbers.append(to_signed(number))
    return numbers
