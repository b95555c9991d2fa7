"""The hash of labels by which Prometheus chooses series for `limit_ratio`: XXH64 of names and values."""

from __future__ import annotations

import struct
from typing import Final

from runvitals.server.doors.promql.vectors import Labels

_MASK: Final = (1 << 64) - 1
_PRIMES: Final = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_STRIPE: Final = 32
_LONG: Final = 255
"""From this length on, a length has three more bytes."""


def label_fraction(labels: Labels) -> float:
    """Return a number from 0 to 1 that only depends on the labels, which are sorted by name.

    Example:
        >>> round(label_fraction((("__name__", "up"),)), 3)
        0.925
    """
    texts = (text.encode("utf-8", "surrogatepass") for pair in labels for text in pair)
    return xxh64(b"".join(_length(len(text)) + text for text in texts)) / _MASK


def _length(size: int) -> bytes:
    return bytes((size,)) if size < _LONG else bytes((_LONG,)) + size.to_bytes(3, "little")


def xxh64(data: bytes) -> int:
    """Return the hash XXH64 with the seed 0.

    Example:
        >>> hex(xxh64(b""))
        '0xef46db3751d8e999'
    """
    first, second, third, fourth, fifth = _PRIMES
    position = len(data) // _STRIPE * _STRIPE
    if position:
        lanes = [(first + second) & _MASK, second, 0, -first & _MASK]
        for start in range(0, position, _STRIPE):
            words = struct.unpack_from("<4Q", data, start)
            lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
        digest = sum(_rotate(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            digest = ((digest ^ _round(0, lane)) * first + fourth) & _MASK
    else:
        digest = fifth
    digest = (digest + len(data)) & _MASK
    while position + 8 <= len(data):
        digest ^= _round(0, *struct.unpack_from("<Q", data, position))
        digest = (_rotate(digest, 27) * first + fourth) & _MASK
        position += 8
    if position + 4 <= len(data):
        digest ^= struct.unpack_from("<I", data, position)[0] * first & _MASK
        digest = (_rotate(digest, 23) * second + third) & _MASK
        position += 4
    for byte in data[position:]:
        digest = _rotate(digest ^ (byte * fifth & _MASK), 11) * first & _MASK
    for by, prime in ((33, second), (29, third), (32, 1)):
        digest = (digest ^ digest >> by) * prime & _MASK
    return digest


def _round(lane: int, word: int) -> int:
    return _rotate((lane + word * _PRIMES[1]) & _MASK, 31) * _PRIMES[0] & _MASK


def _rotate(value: int, by: int) -> int:
    return (value << by | value >> 64 - by) & _MASK
