"""Messages of Protocol Buffers as they lie on the wire: numbered fields, without anybody's generated code."""

from __future__ import annotations

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

VARINT, EIGHT_BYTES, BYTES, FOUR_BYTES = 0, 1, 2, 5


class WireError(ValueError):
    """Bytes that are no message."""


def fields(message: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """(number, kind, value) of each field: an integer of a `VARINT`, else the bytes.

    Raises:
        WireError: the bytes are no message.

    Example:
        >>> list(fields(b"\\x08\\x96\\x01\\x12\\x02hi"))
        [(1, 0, 150), (2, 2, b'hi')]
    """
    position = 0
    while position < len(message):
        tag, position = varint(message, position)
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise WireError("a field without a number")
        if kind == VARINT:
            value, position = varint(message, position)
            yield number, kind, value
            continue
        if kind == BYTES:
            size, position = varint(message, position)
        elif kind == EIGHT_BYTES:
            size = 8
        elif kind == FOUR_BYTES:
            size = 4
        else:
            raise WireError(f"a field of the kind {kind}")
        end = position + size
        if end > len(message):
            raise WireError(f"a field of {size} bytes that breaks off")
        yield number, kind, message[position:end]
        position = end


def varint(message: bytes, position: int) -> tuple[int, int]:
    """(number without a sign, where it ends).

    Raises:
        WireError: it breaks off, or is longer than 64 bits.
    """
    number, shift = 0, 0
    while position < len(message):
        digit = message[position]
        position += 1
        number |= (digit & 127) << shift
        if digit < 128:
            return number & 0xFFFFFFFFFFFFFFFF, position
        shift += 7
        if shift > 63:
            raise WireError("a number that is too long")
    raise WireError("a number that breaks off")


def signed(number: int) -> int:
    """A `VARINT` as int64.

    >>> signed(0xFFFFFFFFFFFFFFFF)
    -1
    """
    return number - (1 << 64) if number >> 63 else number


def double(eight: bytes) -> float:
    value: float = struct.unpack("<d", eight)[0]
    return value


def doubles(packed: bytes) -> list[float]:
    """A packed repeated double.

    Raises:
        WireError: not a multiple of 8 bytes.
    """
    if len(packed) % 8:
        raise WireError(f"{len(packed)} bytes of doubles")
    return list(struct.unpack(f"<{len(packed) // 8}d", packed))


def varints(packed: bytes) -> list[int]:
    """A packed repeated int64."""
    numbers = []
    position = 0
    while position < len(packed):
        number, position = varint(packed, position)
        numbers.append(signed(number))
    return numbers


def text_field(number: int, text: str) -> bytes:
    """A field that holds a text.

    >>> text_field(1, "hi")
    b'\\n\\x02hi'
    """
    data = text.encode()
    return write_varint(number << 3 | BYTES) + write_varint(len(data)) + data


def write_varint(number: int) -> bytes:
    digits = bytearray()
    while number > 127:
        digits.append(number & 127 | 128)
        number >>= 7
    digits.append(number)
    return bytes(digits)
