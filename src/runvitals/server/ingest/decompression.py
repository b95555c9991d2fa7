"""Content encodings: no more is unpacked than is allowed, whatever the bytes claim."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable

import zstandard

from runvitals.server.ingest.errors import Refused, malformed, too_large

_GZIP, _ZLIB, _BARE = 31, 15, -15
"""zlib's `wbits`."""
_MOST_MEMBERS = 100
"""Of one gzip body: what follows each is copied."""


class _OfThread(threading.local):
    """A decompressor must not be used by two threads at once, and a new one costs 4 µs."""

    def __init__(self) -> None:
        self.zstd = zstandard.ZstdDecompressor()


_OF_THREAD = _OfThread()


def unpacked(body: bytes, encoding: str, most: int) -> bytes:
    """A body without its content encoding.

    Args:
        encoding: as the header `Content-Encoding` names it; "" is identity.
        most: bytes that the result may have.

    Raises:
        Refused: 415 for another encoding, 400 for damaged data, 413 for more than `most`.

    Example:
        >>> unpacked(gzip.compress(b"{}"), "gzip", 1000)
        b'{}'
    """
    unpack = _ENCODINGS.get(encoding.strip().lower())
    if unpack is None:
        raise Refused(415, f"Content-Encoding {encoding!r}: zstd, gzip, deflate or identity is allowed")
    data = unpack(body, most)
    if len(data) > most:
        raise too_large(f"the body has more than {most} bytes unpacked; at most so many are allowed")
    return data


def _identity(body: bytes, most: int) -> bytes:
    return body


def _zstd(body: bytes, most: int) -> bytes:
    try:
        size = zstandard.frame_content_size(body)
        if size > most:
            raise too_large(f"the body has {size} bytes unpacked; at most {most} are allowed")
        if size < 0:  # a frame that does not say: it is measured first, without room for what it might have
            with _OF_THREAD.zstd.stream_reader(body) as reader:
                size = len(reader.read(most + 1))
            if size > most:
                raise too_large(f"the body has more than {most} bytes unpacked; at most so many are allowed")
        return _OF_THREAD.zstd.decompress(body, max_output_size=max(size, 1), allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise malformed(f"the body is no single whole zstd frame: {error}") from None


def _gzip(body: bytes, most: int) -> bytes:
    """All members: they are one content (RFC 1952)."""
    parts: list[bytes] = []
    for _ in range(_MOST_MEMBERS):
        data, body = _inflated(body, most, _GZIP)
        parts.append(data)
        most -= len(data)
        if most < 0 or not body:
            return b"".join(parts) if len(parts) > 1 else data
    raise malformed(f"the body has more than {_MOST_MEMBERS} gzip members; at most so many are allowed")


def _deflate(body: bytes, most: int) -> bytes:
    try:
        data, rest = _inflated(body, most, _ZLIB)
    except Refused:
        data, rest = _inflated(
            body, most, _BARE
        )  # what some clients send for "deflate": without zlib's header
    if rest and len(data) <= most:
        raise malformed(f"the body cannot be unpacked: {len(rest)} bytes follow its end")
    return data


def _inflated(body: bytes, most: int, wbits: int) -> tuple[bytes, bytes]:
    """The content of a stream, one byte more than allowed at most; and what follows the stream."""
    inflater = zlib.decompressobj(wbits)
    try:
        data = inflater.decompress(body, most + 1)
    except zlib.error as error:
        raise malformed(f"the body cannot be unpacked: {error}") from None
    if len(data) <= most and not inflater.eof:
        raise malformed("the body cannot be unpacked: its end is missing")
    return data, inflater.unused_data


_ENCODINGS: dict[str, Callable[[bytes, int], bytes]] = {
    "": _identity,
    "identity": _identity,
    "zstd": _zstd,
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
}
