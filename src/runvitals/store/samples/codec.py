"""Encodes chunks: the values of a series, or the times that series share, as bytes.

    offset  size  content
    0       1     codec: 1 pcodec, 2 decimal, 3 zstd
    1       4     CRC-32 of the payload, with the codec as initial value; little-endian
    5       …     payload, encoded by the codec

pcodec (https://github.com/pcodec/pcodec) is used if it is installed: a typical value takes 0.8 bytes.
Otherwise `decimal` (13 % larger) encodes numbers with few decimals, and zstd all others. Each chunk is
decoded again after encoding; if the bits differ, the next codec is used.

Measured on one core of a small cloud machine, for 2,000 values: encoding 0.07 µs per value, verifying 0.02.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runvitals.base import zstd
from runvitals.base.buckets import Floats, Integers

try:
    from pcodec import ChunkConfig, DeltaSpec, ModeSpec, standalone
except ImportError:  # no wheel for this platform: the other codecs are used
    standalone = None

PCODEC, DECIMAL, ZSTD = 1, 2, 3
SEAL_LEVEL, COMPACT_LEVEL = 4, 6
"""Compression levels of pcodec: fast for sealing, better for compaction."""
_HEAD = struct.Struct("<BI")
_DECIMAL_HEAD = struct.Struct("<BBq")
_MAX_DECIMALS = 4
_WIDTHS = ("<i1", "<i2", "<i4", "<i8")
_EXACT = 2.0**53
_MIN_REPETITIONS = 16
"""Average number of occurrences per distinct value from which a dictionary is tried."""
_DICTIONARY_BYTES = 0.4
"""Bytes per value from which a dictionary is tried: smaller chunks gain little, and it doubles the time."""

Array = NDArray[Any]


class CorruptData(ValueError):
    """A chunk or pack is damaged."""


def encode(values: Floats | Integers, level: int = SEAL_LEVEL) -> bytes:
    """Encode float64 values or int64 times, bit for bit.

    Example:
        >>> decode(encode(np.array([0.5, np.nan, -0.0])), np.float64, 3)
        array([ 0.5,  nan, -0. ])
    """
    encoders: list[tuple[int, Callable[[Array, int], bytes | None]]] = [(DECIMAL, _decimal), (ZSTD, _zstd)]
    if standalone is not None:
        encoders.insert(0, (PCODEC, _pcodec))
    for codec, encoder in encoders:
        payload = encoder(values, level)
        if payload is not None and _same_bits(
            _decode_payload(codec, payload, values.dtype, len(values)), values
        ):
            return _HEAD.pack(codec, zlib.crc32(payload, codec)) + payload
    raise AssertionError("zstd did not restore the bytes that it compressed")


def decode(chunk: bytes, dtype: type[np.float64] | type[np.int64], count: int) -> Array:
    """Decode the `count` values of a chunk.

    Raises:
        CorruptData: damaged, of another length or type, or of an unknown or not installed codec.
    """
    if len(chunk) < _HEAD.size:
        raise CorruptData(f"expected a chunk of at least {_HEAD.size} bytes, got {len(chunk)}")
    codec, checksum = _HEAD.unpack_from(chunk)
    payload = chunk[_HEAD.size :]
    if zlib.crc32(payload, codec) != checksum:
        raise CorruptData("the checksum does not match")
    try:
        return _decode_payload(codec, payload, np.dtype(dtype), count)
    except (ValueError, RuntimeError, struct.error) as error:
        raise CorruptData(str(error)) from error


def _decode_payload(codec: int, payload: bytes, dtype: np.dtype[Any], count: int) -> Array:
    if codec == PCODEC:
        if standalone is None:
            raise ValueError("encoded by pcodec, which is not installed: pip install pcodec")
        decompressed = standalone.simple_decompress(payload)
        values = np.empty(0, dtype) if decompressed is None else np.asarray(decompressed)
    elif codec == DECIMAL:
        values = _from_decimal(payload, dtype, count)
    elif codec == ZSTD:
        values = np.frombuffer(zstd.decompress(payload, count * dtype.itemsize), dtype.newbyteorder("<"))
    else:
        raise ValueError(f"unknown codec {codec}")
    if len(values) != count or values.dtype != dtype:
        raise ValueError(f"expected {count} values of {dtype}, got {len(values)} of {values.dtype}")
    return values


def _pcodec(values: Array, level: int) -> bytes | None:
    """Choose pcodec's options where we know better than its automatic choice.

    Its automatic choice of the order of differences takes half as long again, and is wrong for counters that
    rarely change: first differences take a tenth of the bytes. Ratios of small integers (7 of 19 clock ticks)
    have no common step but few distinct values: a dictionary halves them.
    """
    values = np.ascontiguousarray(values)
    differences = ChunkConfig(compression_level=level, delta_spec=DeltaSpec.try_consecutive(1))
    if level < COMPACT_LEVEL or bool((values[1:] >= values[:-1]).all()):
        packed: bytes = standalone.simple_compress(values, differences)
        return packed
    packed = standalone.simple_compress(values, ChunkConfig(compression_level=level))
    if len(packed) <= _DICTIONARY_BYTES * len(values) or not _repeat(values):
        return packed
    dictionary = ChunkConfig(compression_level=level, mode_spec=ModeSpec.try_dict())
    with_dictionary: bytes = standalone.simple_compress(values, dictionary)
    return min(packed, with_dictionary, key=len)


def _repeat(values: Array) -> bool:
    return len(np.unique(values)) * _MIN_REPETITIONS <= len(values)


def _zstd(values: Array, level: int) -> bytes | None:
    return zstd.compress(values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes())


def _decimal(values: Array, level: int) -> bytes | None:
    """Scale to integers by a power of ten, and store their differences in the narrowest type.

    None if a value has more than four decimals or is not finite.
    """
    if values.dtype != np.float64:
        return _encode_differences(0, values)
    if not len(values) or not np.isfinite(values).all() or np.abs(values).max() >= _EXACT / 10**_MAX_DECIMALS:
        return None
    for decimals in range(_MAX_DECIMALS + 1):
        scaled = np.rint(values * 10**decimals)
        if np.array_equal(scaled / 10**decimals, values):
            return _encode_differences(decimals, scaled.astype(np.int64))
    return None


def _encode_differences(decimals: int, integers: Array) -> bytes:
    steps = np.diff(integers)
    low, high = (int(steps.min()), int(steps.max())) if len(steps) else (0, 0)
    width = next(
        i for i, dtype in enumerate(_WIDTHS) if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max
    )
    first = int(integers[0]) if len(integers) else 0
    return _DECIMAL_HEAD.pack(decimals, width, first) + zstd.compress(steps.astype(_WIDTHS[width]).tobytes())


def _from_decimal(payload: bytes, dtype: np.dtype[Any], count: int) -> Array:
    decimals, width, first = _DECIMAL_HEAD.unpack_from(payload)
    if width >= len(_WIDTHS) or decimals > _MAX_DECIMALS:
        raise ValueError("invalid header of a decimal chunk")
    if not count:
        return np.empty(0, dtype)
    width_dtype = np.dtype(_WIDTHS[width])
    steps = np.frombuffer(
        zstd.decompress(payload[_DECIMAL_HEAD.size :], (count - 1) * width_dtype.itemsize), width_dtype
    )
    integers = first + np.concatenate(([0], np.cumsum(steps, dtype=np.int64)))
    values: Array = integers / 10**decimals if dtype == np.float64 else integers
    return values


def _same_bits(decoded: Array, values: Array) -> bool:
    return decoded.tobytes() == values.tobytes()
