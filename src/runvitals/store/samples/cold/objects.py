r"""Objects of cold storage: files with the values of many chunks, and a list of them at the end.

    size   content
    8      "RVCOLD1\n"
    …      encoded values and times, one after the other
    …      the list: JSON, compressed by zstd
    16     the size of the list, compressed and not, little-endian

Reading needs no list, because the month file has the place of each chunk. With it, chunks can be recovered
if the month file is lost.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np

from runvitals.base import zstd
from runvitals.store import private_files
from runvitals.store.samples import codec
from runvitals.store.samples.cold.rows import LocalChunk
from runvitals.store.samples.sqlite.blocks import Block, on_disk

_MAGIC = b"RVCOLD1\n"
_SIZES = struct.Struct("<QQ")
_MAX_LIST_BYTES = 64 << 20


class _Writer:
    """Writes a file and computes its SHA-256."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.digest = hashlib.sha256()
        self.size = 0

    def add(self, part: bytes) -> int:
        """Append bytes. Returns their offset."""
        offset = self.size
        self._file.write(part)
        self.digest.update(part)
        self.size += len(part)
        return offset


def write(path: str, store_id: str | None, chunks: Sequence[LocalChunk]) -> tuple[str, int, list[int]]:
    """Write an object into a new file, and sync it to the disk.

    Returns:
        its SHA-256, its size, and the offset of the values of each chunk.
    """
    private_files.create(path, exclusive=True)
    with open(path, "wb") as file:
        writer = _Writer(file)
        writer.add(_MAGIC)
        offsets = [writer.add(local.values) for local in chunks]
        times = {local.chunk.times: local.times for local in chunks}
        times_places = {number: (writer.add(data), len(data)) for number, data in times.items()}
        listed = {
            "store": store_id,
            "chunks": [
                [*chunk[:5], *times_places[chunk.times], offset, len(values)]
                for (chunk, values, _), offset in zip(chunks, offsets, strict=True)
            ],
        }
        text = json.dumps(listed, separators=(",", ":")).encode()
        packed = zstd.compress(text)
        writer.add(packed)
        writer.add(_SIZES.pack(len(packed), len(text)))
        file.flush()
        os.fsync(file.fileno())
    return writer.digest.hexdigest(), writer.size, offsets


def read_list(file: BinaryIO) -> dict[str, Any]:
    """Return the list at the end of an object.

    Raises:
        ValueError: this is not an object.
    """
    end = file.seek(0, os.SEEK_END)
    file.seek(0)
    if end < len(_MAGIC) + _SIZES.size or file.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("not an object of cold storage")
    file.seek(end - _SIZES.size)
    packed, size = _SIZES.unpack(file.read(_SIZES.size))
    if not 0 < packed <= end - _SIZES.size - len(_MAGIC) or size > _MAX_LIST_BYTES:
        raise ValueError("the list of its chunks is damaged")
    file.seek(end - _SIZES.size - packed)
    listed: dict[str, Any] = json.loads(zstd.decompress(file.read(packed), size))
    return listed


def blocks(file: BinaryIO, listed: dict[str, Any]) -> Iterator[tuple[int, Block]]:
    """Yield the runs and samples of an object, or raise ValueError for a damaged chunk."""
    for run, metric, _, _, ticks, times_offset, times_size, offset, size in listed["chunks"]:
        t = codec.decode(_part(file, times_offset, times_size), np.int64, ticks)
        values = codec.decode(_part(file, offset, size), np.float64, ticks)
        yield run, on_disk((metric,), t, values.reshape(-1, 1))


def _part(file: BinaryIO, offset: int, size: int) -> bytes:
    file.seek(offset)
    return file.read(size)
