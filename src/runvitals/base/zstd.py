"""zstd compression, with a compressor and a decompressor per thread, because they must not be shared."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import zstandard


class _PerThread(threading.local):
    def __init__(self) -> None:
        # A checksum takes 4 bytes per frame and detects damage on disk.
        self.compressor = zstandard.ZstdCompressor(level=3, write_checksum=True)
        self.decompressor = zstandard.ZstdDecompressor()


_PER_THREAD = _PerThread()


def compress(data: bytes) -> bytes:
    """Compress into one frame, with a checksum."""
    return _PER_THREAD.compressor.compress(data)


def decompress_all(frames: Sequence[bytes | memoryview], size: int) -> bytes | None:
    """Decompress many frames in one call. Returns their contents, concatenated.

    None if a frame does not have `size` bytes of content or is damaged, or if the installed `zstandard` lacks
    the function: decompress them one by one then.
    """
    decompressor = _PER_THREAD.decompressor
    if not frames or not hasattr(decompressor, "multi_decompress_to_buffer"):
        return None
    try:
        if any(zstandard.frame_content_size(frame) != size for frame in frames):
            return None
        buffers = decompressor.multi_decompress_to_buffer(list(frames))
    except zstandard.ZstdError:
        return None
    data = b"".join(buffers[index].tobytes() for index in range(len(buffers)))
    return data if len(data) == size * len(frames) else None


def decompress(frame: bytes | memoryview, size: int) -> bytes:
    """Decompress a frame whose content must have `size` bytes.

    A frame that declares another size is rejected before it is decompressed.

    Raises:
        ValueError: not a frame of that size, or damaged.
    """
    try:
        declared = zstandard.frame_content_size(frame)
        if declared not in (size, -1):  # -1: the frame declares no size
            raise ValueError(f"expected a zstd frame of {size} bytes, got {declared}")
        data = _PER_THREAD.decompressor.decompress(frame, max_output_size=size, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise ValueError(f"invalid zstd frame: {error}") from error
    if len(data) != size:
        raise ValueError(f"expected a zstd frame of {size} bytes, got {len(data)}")
    return data
