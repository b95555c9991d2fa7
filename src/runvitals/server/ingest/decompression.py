"""Content encodings. Never produces more bytes than allowed; the size that the data declares is ignored."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable

import anyio
import anyio.to_thread
import zstandard

from runvitals.server.http.request_errors import HttpRejection, malformed, too_large

_GZIP, _ZLIB, _RAW_DEFLATE = 31, 15, -15
"""zlib's `wbits`."""
_MAX_GZIP_MEMBERS = 100
"""In one body: for each member, the rest of the body is copied."""


class _ThreadDecompressor(threading.local):
    """Two threads must not use one decompressor concurrently, and creating one takes 4 µs."""

    def __init__(self) -> None:
        self.zstd = zstandard.ZstdDecompressor()


_DECOMPRESSOR = _ThreadDecompressor()


def decompress(body: bytes, encoding: str, max_bytes: int) -> bytes:
    """A body without its content encoding.

    Args:
        encoding: value of the header `Content-Encoding`; "" is identity.
        max_bytes: maximum size of the result.

    Raises:
        HttpRejection: 415 for an unknown encoding, 400 for damaged data, 413 for more than `max_bytes`.

    Example:
        >>> decompress(gzip.compress(b"{}"), "gzip", 1000)
        b'{}'
    """
    decode = _ENCODINGS.get(encoding.strip().lower())
    if decode is None:
        raise HttpRejection(
            415, f"unknown Content-Encoding {encoding!r}; expected zstd, gzip, deflate or identity"
        )
    data = decode(body, max_bytes)
    if len(data) > max_bytes:
        raise _too_large(max_bytes)
    return data


async def decompress_in_turn(
    body: bytes, encoding: str, max_bytes: int, small: int, limiter: anyio.CapacityLimiter
) -> bytes:
    """A body without its content encoding; what has more than `small` bytes is decompressed in a thread.

    Args:
        limiter: how many are decompressed at once: a small body may become as large as is allowed.

    Raises:
        HttpRejection: as `decompress`.
    """
    if not encoding:
        return body
    if len(body) <= small:
        try:
            return decompress(body, encoding, small)
        except HttpRejection as error:
            if error.status != 413:
                raise
    return await anyio.to_thread.run_sync(decompress, body, encoding, max_bytes, limiter=limiter)


def _too_large(max_bytes: int) -> HttpRejection:
    return too_large(f"the body has more than {max_bytes} bytes decompressed, the largest size allowed")


def _identity(body: bytes, max_bytes: int) -> bytes:
    return body


def _zstd(body: bytes, max_bytes: int) -> bytes:
    try:
        size = zstandard.frame_content_size(body)
        if size > max_bytes:
            raise too_large(f"the body has {size} bytes decompressed; at most {max_bytes} are allowed")
        if size < 0:  # the frame declares no size: measure it first instead of allocating the maximum
            with _DECOMPRESSOR.zstd.stream_reader(body) as reader:
                size = len(reader.read(max_bytes + 1))
            if size > max_bytes:
                raise _too_large(max_bytes)
        return _DECOMPRESSOR.zstd.decompress(body, max_output_size=max(size, 1), allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise malformed(f"invalid zstd body, expected a single complete frame: {error}") from None


def _gzip(body: bytes, max_bytes: int) -> bytes:
    """The members of a gzip body, concatenated (RFC 1952)."""
    parts: list[bytes] = []
    for _ in range(_MAX_GZIP_MEMBERS):
        data, body = _inflate(body, max_bytes, _GZIP)
        parts.append(data)
        max_bytes -= len(data)
        if max_bytes < 0 or not body:
            return b"".join(parts) if len(parts) > 1 else data
    raise malformed(f"the body has more than {_MAX_GZIP_MEMBERS} gzip members, the largest number allowed")


def _deflate(body: bytes, max_bytes: int) -> bytes:
    try:
        data, rest = _inflate(body, max_bytes, _ZLIB)
    except HttpRejection:
        # Some clients send "deflate" without zlib's header.
        data, rest = _inflate(body, max_bytes, _RAW_DEFLATE)
    if rest and len(data) <= max_bytes:
        raise malformed(f"invalid compressed body: {len(rest)} bytes follow its end")
    return data


def _inflate(body: bytes, max_bytes: int, wbits: int) -> tuple[bytes, bytes]:
    """The content of a stream, at most one byte more than allowed; and the bytes after the stream."""
    inflater = zlib.decompressobj(wbits)
    try:
        data = inflater.decompress(body, max_bytes + 1)
    except zlib.error as error:
        raise malformed(f"invalid compressed body: {error}") from None
    if len(data) <= max_bytes and not inflater.eof:
        raise malformed("invalid compressed body: it is truncated")
    return data, inflater.unused_data


_ENCODINGS: dict[str, Callable[[bytes, int], bytes]] = {
    "": _identity,
    "identity": _identity,
    "zstd": _zstd,
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
}
