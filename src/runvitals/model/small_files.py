"""Many small files in one body: of each its SHA-256, its size in 4 bytes, and its content."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from runvitals.model.limits import SMALL_FILE_BYTES

_HEAD: Final = struct.Struct(">32sI")
HEAD_BYTES: Final = _HEAD.size


def pack(files: Iterable[tuple[str, bytes]]) -> bytes:
    """Return the body of files, each by its SHA-256 in hexadecimal."""
    return b"".join(
        part
        for sha256, content in files
        for part in (_HEAD.pack(bytes.fromhex(sha256), len(content)), content)
    )


def unpack(body: bytes) -> Iterator[tuple[str, memoryview]]:
    """Yield the files of a body, each with the SHA-256 that it is said to have.

    Raises:
        ValueError: it ends within a file, or one is too large.
    """
    view, at = memoryview(body), 0
    while at < len(view):
        if at + HEAD_BYTES > len(view):
            raise ValueError(f"the body ends within the head of a file, at byte {at:,}")
        digest, size = _HEAD.unpack_from(view, at)
        at += HEAD_BYTES
        if size > SMALL_FILE_BYTES:
            raise ValueError(
                f"a file of {size:,} bytes; at most {SMALL_FILE_BYTES:,} can be sent with others"
            )
        if at + size > len(view):
            raise ValueError(f"the body ends within a file of {size:,} bytes, at byte {len(view):,}")
        yield digest.hex(), view[at : at + size]
        at += size
