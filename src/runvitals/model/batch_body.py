"""Times and values of a batch as bytes.

Clients send them in this format, and the sample store keeps them in it.

    offset  size  content
    0       1     packing: 0 none, 1 zstd (one frame), 2 zlib
    1       4     rows, unsigned little-endian
    5       …     packed: times (rows × int64 ms UTC), then each column (rows × float64), little-endian

The body does not contain the number of columns. zlib is for clients that have only Python's standard library.

Measured: unpacking 10 rows × 60 columns takes 10 µs, packing them with zstd 30 µs.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from runvitals.base import zstd
from runvitals.base.buckets import Floats, Integers
from runvitals.model.batch_format import HEADER, NONE, ZLIB, ZSTD

__all__ = ["HEADER_BYTES", "NONE", "ZLIB", "ZSTD", "pack", "rows", "unpack", "unpack_column"]

_ITEM = 8
_CHUNK_BYTES = 4 << 20
"""Bytes that `unpack_column` unpacks in one call."""
HEADER_BYTES = HEADER.size


def pack(t: Integers, values: Floats, packing: int = ZSTD) -> bytes:
    """Pack times and values.

    Args:
        t: ms UTC, int64.
        values: float64, of shape (rows, columns).
        packing: NONE, ZSTD or ZLIB.

    Example:
        >>> t, values = unpack(pack(np.array([1, 2]), np.array([[0.5], [1.5]])), columns=1)
        >>> t.tolist(), values.tolist()
        ([1, 2], [[0.5], [1.5]])
    """
    raw = t.astype("<i8", copy=False).tobytes() + values.astype("<f8", copy=False).tobytes(order="F")
    if packing == ZSTD:
        raw = zstd.compress(raw)
    elif packing == ZLIB:
        raw = zlib.compress(raw, 1)
    return HEADER.pack(packing, len(t)) + raw


def unpack(body: bytes | memoryview, columns: int) -> tuple[Integers, Floats]:
    """Unpack times and values of shape (rows, columns). The arrays are read-only views of one buffer.

    Raises:
        ValueError: the body is damaged or has a different number of columns. Never unpacks more bytes than
            the declared rows take.
    """
    if len(body) < HEADER.size:
        raise ValueError(f"expected a body of at least {HEADER.size} bytes, got {len(body)}")
    packing, rows = HEADER.unpack_from(body)
    raw = _decompress(packing, memoryview(body)[HEADER.size :], rows * (1 + columns) * _ITEM)
    t = np.frombuffer(raw, "<i8", rows)
    values = np.frombuffer(raw, "<f8", rows * columns, offset=rows * _ITEM)
    return t, values.reshape(columns, rows).T


def unpack_column(
    bodies: Sequence[bytes], rows: int, columns: int, column: int
) -> tuple[Integers, Floats] | None:
    """Unpack the times and one column of many bodies of the same shape.

    Returns arrays of shape (bodies, rows).

    Returns None if a body has a different shape, is damaged or is not packed with zstd: then unpack them one
    by one.
    """
    head = HEADER.pack(ZSTD, rows)
    if not all(body.startswith(head) for body in bodies):
        return None
    size, first = rows * (1 + columns) * _ITEM, (1 + column) * rows
    t, values = np.empty((len(bodies), rows), np.int64), np.empty((len(bodies), rows))
    per_call = max(1, _CHUNK_BYTES // max(size, 1))
    for start in range(0, len(bodies), per_call):
        chunk = bodies[start : start + per_call]
        raw = zstd.decompress_all([memoryview(body)[HEADER.size :] for body in chunk], size)
        if raw is None:
            return None
        t[start : start + len(chunk)] = np.frombuffer(raw, "<i8").reshape(len(chunk), -1)[:, :rows]
        unpacked = np.frombuffer(raw, "<f8").reshape(len(chunk), -1)
        values[start : start + len(chunk)] = unpacked[:, first : first + rows]
    return t, values


def rows(body: bytes | memoryview) -> int:
    """Return the number of rows that a body declares."""
    return int(HEADER.unpack_from(body)[1])


def _decompress(packing: int, data: memoryview, size: int) -> bytes | memoryview:
    if packing == NONE:
        if len(data) != size:
            raise ValueError(f"expected {size} bytes of times and values, got {len(data)}")
        return data
    if packing == ZSTD:
        return zstd.decompress(data, size)
    if packing == ZLIB:
        return _inflate(data, size)
    raise ValueError(f"unknown packing {packing}; expected 0 (none), 1 (zstd) or 2 (zlib)")


def _inflate(data: memoryview, size: int) -> bytes:
    inflater = zlib.decompressobj()
    try:
        raw = inflater.decompress(data, size + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if len(raw) != size or not inflater.eof or inflater.unused_data:
        raise ValueError(f"invalid zlib data of {len(data)} bytes; expected {size} bytes of times and values")
    return raw
