"""Snappy's block format: compressed with `cramjam` if it is installed, else stored uncompressed.

https://github.com/google/snappy/blob/main/format_description.txt
"""

from __future__ import annotations

from collections.abc import Callable

from runvitals.base.protobuf import varint

try:
    from cramjam import snappy as _snappy
except ImportError:
    _compress: Callable[[bytes], bytes] | None = None
else:

    def _compress(data: bytes) -> bytes:
        return bytes(_snappy.compress_raw(data))


_LITERAL_4_BYTES = 63 << 2  # a literal whose length minus one follows in 4 bytes


def compress(data: bytes) -> bytes:
    """Compress data into one block."""
    return encode_literally(data) if _compress is None else _compress(data)


def encode_literally(data: bytes) -> bytes:
    """Return the data as one uncompressed literal, which every decoder accepts; 6 to 10 bytes larger.

    Example:
        >>> encode_literally(b"abc").hex()
        '03fc02000000616263'
    """
    if not data:
        return varint(0)
    return b"".join(
        (varint(len(data)), bytes((_LITERAL_4_BYTES,)), (len(data) - 1).to_bytes(4, "little"), data)
    )
