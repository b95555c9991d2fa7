r"""Protocol buffers' wire format, written and read: of TensorBoard, remote write, OTLP and W&B's files.

A message is the concatenation of its fields. To write one, each of `uint`, `text`, `double` … makes one
field, tag and all; nested messages are `text(number, message)`. To read one, `fields` yields what is in it;
the reader has to know what the numbers mean.

https://protobuf.dev/programming-guides/encoding/

Example:
    >>> uint(1, 150) + text(2, "testing")
    b'\x08\x96\x01\x12\x07testing'
    >>> list(fields(_))
    [(1, 150), (2, b'testing')]
"""

from __future__ import annotations

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

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


class Malformed(ValueError):
    """These bytes are no message; the text says where."""


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message, in their order, unknown ones too: (number, value).

    A value is an int for varints and fixed sizes (`signed`, `unzigzag` and `as_double` turn it into what the
    type means), and bytes for texts, bytes, messages and packed numbers. 1 µs a field.

    Raises:
        Malformed: cut off, or of a kind that is not written any more (groups).
    """
    at, end = 0, len(data)
    while at < end:
        tag, at = read_varint(data, at)
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise Malformed(f"field number 0 before byte {at}")
        if kind == _VARINT:
            value, at = read_varint(data, at)
            yield number, value
            continue
        if kind == _LENGTH:
            length, at = read_varint(data, at)
        elif kind in (_FIXED32, _FIXED64):
            length = 4 if kind == _FIXED32 else 8
        else:
            raise Malformed(f"wire type {kind} of field {number} before byte {at}")
        if at + length > end:
            raise Malformed(f"field {number} ends at byte {at + length} of {end}")
        piece = data[at : at + length]
        at += length
        yield number, piece if kind == _LENGTH else int.from_bytes(piece, "little")


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """(the number that begins at a byte, where the next thing begins).

    Raises:
        Malformed: it is cut off, or longer than 10 bytes.
    """
    value = shift = 0
    for place in range(at, min(at + 10, len(data))):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _UINT64, place + 1
        shift += 7
    raise Malformed(f"no number at byte {at} of {len(data)}")


def signed(value: int) -> int:
    """Of type int32 or int64, negative ones being two's complements of 64 bits."""
    return value - (1 << 64) if value >> 63 else value


def unzigzag(value: int) -> int:
    """Of type sint32 or sint64."""
    return value >> 1 ^ -(value & 1)


def as_double(value: int) -> float:
    """Of type double."""
    found: float = struct.unpack("<d", value.to_bytes(8, "little"))[0]
    return found
