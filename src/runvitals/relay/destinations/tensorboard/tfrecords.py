"""The TFRecord container of event files: each record has its length and two masked CRC-32C checksums.

https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details
"""

from __future__ import annotations

import struct

_CASTAGNOLI = 0x82F63B78  # reflected; zlib's crc32 uses another polynomial
_MASK_DELTA = 0xA282EAD8


def _table() -> tuple[int, ...]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_CASTAGNOLI if value & 1 else 0)
        table.append(value)
    return tuple(table)


_TABLE = _table()


def _crc32c(data: bytes) -> int:
    """Return the CRC-32C of some bytes; takes 100 ns per byte, 1000 times as long as Google's package.

    Example:
        >>> hex(_crc32c(b"123456789"))
        '0xe3069283'
    """
    crc, table = 0xFFFFFFFF, _TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


try:
    import google_crc32c
except ImportError:
    crc32c = _crc32c
else:
    crc32c = google_crc32c.value


def masked_sum(data: bytes) -> int:
    """Return the masked checksum that TFRecord requires: rotated by 15 bits, and a constant added."""
    crc = crc32c(data)
    masked: int = ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF
    return masked


def _mask(data: bytes) -> bytes:
    return struct.pack("<I", masked_sum(data))


def record(payload: bytes) -> bytes:
    """Encode one record."""
    length = struct.pack("<Q", len(payload))
    return length + _mask(length) + payload + _mask(payload)
