"""zstd for any thread: a compressor and a decompressor each, because they must not be shared."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import zstandard


class _OfThread(threading.local):
    def __init__(self) -> None:
        # The checksum is 4 bytes a frame, and tells bytes that were damaged on disk from those that were not.
        self.compressor = zstandard.ZstdCompressor(level=3, write_checksum=True)
        self.decompressor = zstandard.ZstdDecompressor()


_OF_THREAD = _OfThread()


def compress(data: bytes) -> bytes:
    """One frame, with a checksum."""
    return _OF_THREAD.compressor.compress(data)


def decompress_all(frames: Sequence[bytes | memoryview], size: int) -> bytes | None:
    """The contents of frames, one after the other, each of which must be `size` bytes; None where one is not,
    or this Python's zstd cannot do many at once: then do them one by one.
    """
    decompressor = _OF_THREAD.decompressor
    if not frames or not hasattr(decompressor, "multi_decompress_to_buffer"):
        return None
    try:
        if any(zstandard.frame_content_size(frame) != size for frame in frames):
            return None
        found = decompressor.multi_decompress_to_buffer(list(frames))
    except zstandard.ZstdError:
        return None
    data = b"".join(found[number].tobytes() for number in range(len(found)))
    return data if len(data) == size * len(frames) else None


def decompress(frame: bytes | memoryview, size: int) -> bytes:
    """The content of a frame, which must be `size` bytes: a frame that claims more is refused before it is
    unpacked.

    Raises:
        ValueError: not a frame of that size, or damaged.
    """
    try:
        claimed = zstandard.frame_content_size(frame)
        if claimed not in (size, -1):  # -1: the sender's compressor did not know it beforehand
            raise ValueError(f"a zstd frame of {size} bytes was expected, not of {claimed}")
        data = _OF_THREAD.decompressor.decompress(frame, max_output_size=size, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise ValueError(f"no whole zstd frame: {error}") from error
    if len(data) != size:
        raise ValueError(f"a zstd frame of {size} bytes was expected, not of {len(data)}")
    return data
