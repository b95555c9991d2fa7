"""Bodies of remote write requests: snappy's block format, or the zstd of VictoriaMetrics' agent."""

from __future__ import annotations

from cramjam import DecompressionError, snappy

from runvitals.base.protobuf import Malformed, read_varint
from runvitals.server.http.request_errors import malformed, too_large
from runvitals.server.ingest.decompression import decompress

_HIGHEST_RATIO = 64
"""Three bytes of a snappy block stand for at most 64."""


def decompressed(body: bytes, encoding: str, max_bytes: int) -> bytes:
    """A body without its content encoding.

    Args:
        encoding: value of the header `Content-Encoding`. Without one it is snappy, as in remote write 1.0.
        max_bytes: maximum size of the result, which is checked before anything is decompressed.

    Raises:
        HttpRejection: 400 for damaged data, 413 for more than `max_bytes`, 415 for an unknown encoding.
    """
    name = encoding.strip().lower()
    if name not in ("", "snappy"):
        return decompress(body, name, max_bytes)
    try:
        size, _ = read_varint(body, 0)
    except Malformed:
        raise malformed("invalid snappy block: it does not begin with its size") from None
    if size > max_bytes:
        raise too_large(f"the body has {size} bytes decompressed; at most {max_bytes} are allowed")
    if size > len(body) * _HIGHEST_RATIO:
        raise malformed(f"invalid snappy block: {len(body)} bytes cannot contain {size}")
    try:
        return bytes(snappy.decompress_raw(body))
    except DecompressionError as error:
        raise malformed(f"invalid snappy block: {error}") from None
