"""Compression of requests: zstd if `zstandard` is installed, else zlib."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from runvitals.model.batch_format import HEADER, NONE, ZLIB, ZSTD

try:
    import zstandard
except ImportError:
    _ZSTD = None
else:
    _ZSTD = zstandard

# Smaller bodies are not compressed: it takes longer than it saves on any network.
_MIN_BYTES = 512


class BodyCompressor:
    """Compresses data; for use by one thread.

    Args:
        zstd: whether to use zstd; default: if it is installed.
    """

    def __init__(self, zstd: bool = _ZSTD is not None) -> None:
        self._zstd = _ZSTD.ZstdCompressor(level=3, write_checksum=True) if zstd and _ZSTD else None

    def body(self, times: bytes, columns: Sequence[bytes]) -> bytes:
        """Encode times (int64) and columns (float64), little-endian, as the `body` of an envelope.

        Example:
            >>> BodyCompressor(zstd=False).body((1).to_bytes(8, "little"), [bytes(8)])[:5].hex()
            '0001000000'
        """
        raw = b"".join((times, *columns))
        if len(raw) < _MIN_BYTES:
            packing = NONE
        elif self._zstd is not None:
            packing, raw = ZSTD, self._zstd.compress(raw)
        else:
            packing, raw = ZLIB, zlib.compress(raw, 1)
        return HEADER.pack(packing, len(times) // 8) + raw

    def content(self, data: bytes, packed_bytes: int = 0) -> tuple[bytes, str]:
        """Compress the body of a request; returns (body, Content-Encoding).

        Args:
            packed_bytes: how much of it `body` has encoded, which a second compression makes no smaller.
        """
        if len(data) - packed_bytes < _MIN_BYTES:
            return data, "identity"
        if self._zstd is not None:
            return self._zstd.compress(data), "zstd"
        packer = zlib.compressobj(1, zlib.DEFLATED, 31)
        return packer.compress(data) + packer.flush(), "gzip"
