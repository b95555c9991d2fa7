"""An encoder for the subset of MessagePack that envelopes use, without a dependency.

https://github.com/msgpack/msgpack/blob/master/spec.md
"""

from __future__ import annotations

from collections.abc import Callable
from struct import pack as p
from typing import Any


def pack(value: Any) -> bytes:
    """Encode None, bool, int, float, str, bytes, and lists, tuples and dictionaries of them.

    Integers of more than 64 bits, which MessagePack cannot represent, are encoded as text.

    Raises:
        TypeError: unsupported type.

    Example:
        >>> pack({"seq": 3, "t": [1.5]}).hex()
        '82a373657103a17491cb3ff8000000000000'
    """
    parts: list[bytes] = []
    _add(value, parts.append)
    return b"".join(parts)


def _add(value: Any, add: Callable[[bytes], None]) -> None:
    if value is None:
        add(b"\xc0")
    elif isinstance(value, bool):
        add(b"\xc3" if value else b"\xc2")
    elif isinstance(value, int):
        if -(1 << 63) <= value < 1 << 64:
            add(_int(value))
        else:
            _add(str(value), add)
    elif isinstance(value, float):
        add(p(">Bd", 0xCB, value))
    elif isinstance(value, str):
        data = value.encode("utf-8", "replace")
        add(_head(len(data), 0xA0, 32, 0xD9, 0xDA, 0xDB))
        add(data)
    elif isinstance(value, (bytes, bytearray, memoryview)):
        add(_head(len(value), 0, 0, 0xC4, 0xC5, 0xC6))
        add(bytes(value))
    elif isinstance(value, (list, tuple)):
        add(_head(len(value), 0x90, 16, None, 0xDC, 0xDD))
        for item in value:
            _add(item, add)
    elif isinstance(value, dict):
        add(_head(len(value), 0x80, 16, None, 0xDE, 0xDF))
        for key, item in value.items():
            _add(key, add)
            _add(item, add)
    else:
        raise TypeError(f"unsupported type {type(value).__name__}: {value!r:.80}")


def _int(value: int) -> bytes:
    if -32 <= value < 128:
        return p(">b", value) if value < 0 else p(">B", value)
    if value < 0:
        return p(">Bq", 0xD3, value)
    for code, format, limit in ((0xCC, ">BB", 8), (0xCD, ">BH", 16), (0xCE, ">BI", 32)):
        if value < 1 << limit:
            return p(format, code, value)
    return p(">BQ", 0xCF, value)


def _head(size: int, fix: int, fix_limit: int, one_byte: int | None, two: int, four: int) -> bytes:
    """Return the header of a text, bytes, list or map of that size."""
    if size < fix_limit:
        return p(">B", fix | size)
    if one_byte is not None and size < 1 << 8:
        return p(">BB", one_byte, size)
    if size < 1 << 16:
        return p(">BH", two, size)
    return p(">BI", four, size)
