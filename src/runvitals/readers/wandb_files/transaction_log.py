"""The container of a `.wandb` file: a 7-byte header, then LevelDB's log format with plain CRC-32.

The file consists of 32 KiB blocks, the first of which includes the header. A block contains chunks: CRC-32
of type and payload (u32le), length (u16le), type (1 full, 2 first, 3 middle, 4 last), payload. Fewer than 7
bytes at the end of a block are padding.

https://github.com/google/leveldb/blob/main/doc/log_format.md
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO

SUFFIX = ".wandb"
_MAX_FILES = 10_000
HEAD = b":W&B" + struct.pack("<HB", 0xBEE1, 0)
BLOCK_BYTES = 32 * 1024
_CHUNK = struct.Struct("<IHB")
_DAMAGED, _WHOLE, _FIRST, _MIDDLE, _LAST = 0, 1, 2, 3, 4
_MAX_RECORD_BYTES = 256 * 1024 * 1024


class TransactionLog:
    """The records of a `.wandb` file.

    Args:
        file: positioned at its start.
        name: for error messages.

    Attributes:
        damaged: number of records that could not be read and were skipped.
        cut: whether the file ends in the middle of a record, because its writer was killed or is still
            writing.

    Raises:
        ValueError: not a `.wandb` file, or an unsupported version.

    Example:
        >>> with open("run-abc.wandb", "rb") as file:
        ...     payloads = list(TransactionLog(file, file.name).records())
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        head = file.read(len(HEAD))
        if head != HEAD:
            what = "unsupported format version" if head[:4] == HEAD[:4] else "not a .wandb file"
            raise ValueError(f"{name}: {what}: expected the header {HEAD!r}, not {head!r}")
        self._file = file
        self._next = len(HEAD)
        self.damaged = 0
        self.cut = False

    def records(self) -> Iterator[bytes]:
        """Yield the payload of each record, in order.

        Damage loses the rest of its block. Called again, it yields those that were written since.
        """
        pieces: list[bytes] = []
        self.cut = False
        for kind, payload, end in self._chunks(self._next):
            if kind == _DAMAGED:
                self.damaged += 1
                pieces = []
                self._next = end
                continue
            if kind in (_WHOLE, _FIRST):
                self.damaged += bool(pieces)
                pieces = []
            elif not pieces:  # the first chunk of this record was damaged
                self.damaged += kind == _LAST
                self._next = end
                continue
            pieces.append(payload)
            if sum(map(len, pieces)) > _MAX_RECORD_BYTES:
                self.damaged += 1
                pieces = []
            elif kind in (_WHOLE, _LAST):
                self._next = end
                yield b"".join(pieces)
                pieces = []
        self.cut = self.cut or bool(pieces)

    @property
    def position(self) -> int:
        """Where the record after the last one that was yielded begins."""
        return self._next

    def skip_to_block(self, offset: int) -> None:
        """Continue with the first record that begins in the block of an offset, or after it."""
        self._next = max(offset - offset % BLOCK_BYTES, len(HEAD))

    def _chunks(self, start: int) -> Iterator[tuple[int, bytes, int]]:
        """Yield the chunks from an offset on: type, payload, and the offset of their end."""
        self._file.seek(start)
        while True:
            size = BLOCK_BYTES - start % BLOCK_BYTES
            block = self._file.read(size)
            if not block:
                return
            yield from self._chunks_of_block(block, start, len(block) < size)
            start += len(block)

    def _chunks_of_block(self, block: bytes, start: int, last: bool) -> Iterator[tuple[int, bytes, int]]:
        at = 0
        while at + _CHUNK.size <= len(block):
            crc, length, kind = _CHUNK.unpack_from(block, at)
            if not (crc or length or kind):  # preallocated space
                return
            end = at + _CHUNK.size + length
            if end > len(block):
                self.cut = self.cut or last
                if not last:
                    yield _DAMAGED, b"", start + len(block)
                return
            if not _WHOLE <= kind <= _LAST or zlib.crc32(block[at + 6 : end]) != crc:
                yield _DAMAGED, b"", start + len(block)
                return
            yield kind, block[at + _CHUNK.size : end], start + end
            at = end
        self.cut = self.cut or (last and at < len(block))


def files_below(folder: str) -> list[str]:
    """Return the `.wandb` files of a folder, of its run folders, and of the `wandb` folder in it."""
    paths: dict[str, str] = {}
    for parent in (folder, os.path.join(folder, "wandb")):
        for entry in _entries(parent):
            if entry.name.endswith(SUFFIX) and entry.is_file():
                paths.setdefault(os.path.realpath(entry.path), entry.path)
            elif entry.is_dir() and ("run-" in entry.name):  # run-…, offline-run-…; `latest-run` is a link
                for inner in _entries(entry.path):
                    if inner.name.endswith(SUFFIX) and inner.is_file():
                        paths.setdefault(os.path.realpath(inner.path), inner.path)
    return sorted(paths)[:_MAX_FILES]


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []
