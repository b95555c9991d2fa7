"""A journal reader written only from `docs/concepts/journal.md`, to test the page."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

MAGIC = bytes.fromhex("f5525631")
MAX_PAYLOAD = 16_777_216
MAX_BLOCK = 17_825_792
JSON_TYPES = {1, 2, 4, 6, 7, 8}


class FileContents:
    """The contents of a file: frames as (type, seq, payload), damaged ranges, start of the torn tail."""

    def __init__(self, data: bytes) -> None:
        self.frames: list[tuple[int, int, bytes]] = []
        self.damage: list[tuple[int, int]] = []
        self.torn_from: int | None = None
        position = 0
        while position < len(data):
            header = data[position : position + 24]
            if len(header) < 24 or not any(data[position:]):
                self.torn_from = position
                return
            length = int.from_bytes(header[12:16], "little")
            end = position + 24 + length
            if not self._is_valid(header, length):
                next_magic = data.find(MAGIC, position + 1)
                end = next_magic if next_magic >= 0 else self._part_of_magic(data, position + 1)
                self._skip(position, end)
            elif end <= len(data) and zlib.crc32(data[position + 11 : end]) == int.from_bytes(
                header[4:8], "little"
            ):
                seq = int.from_bytes(header[16:24], "little")
                self.frames.append((header[11], seq, data[position + 24 : end]))
            elif end >= len(data):
                self.torn_from = position
                return
            else:
                self._skip(position, end)
            position = end

    @staticmethod
    def _is_valid(header: bytes, length: int) -> bool:
        check = zlib.crc32(header[11:24]) % 2**24
        return (
            header[:4] == MAGIC and length <= MAX_PAYLOAD and int.from_bytes(header[8:11], "little") == check
        )

    @staticmethod
    def _part_of_magic(data: bytes, position: int) -> int:
        """A magic may begin in the last three bytes of a growing file."""
        starts = [i for i in range(max(position, len(data) - 3), len(data)) if MAGIC.startswith(data[i:])]
        return min(starts, default=len(data))

    def _skip(self, start: int, end: int) -> None:
        if self.damage and self.damage[-1][1] == start:
            start = self.damage.pop()[0]
        self.damage.append((start, end))

    def records(self) -> list[tuple[int, int, Any]]:
        """(type, seq, content): an object, a `dict` of a sample's time and values by key, or bytes."""
        schemas: dict[int, list[str]] = {}
        records = []
        for type, seq, payload in self._unsealed():
            content: Any = payload
            if type in JSON_TYPES:
                content = json.loads(payload)
            if type == 2:
                schemas[content["id"]] = content["keys"]
            if type == 3:
                schema, _, time_ms = struct.unpack_from("<IIq", payload)
                keys = schemas[schema]
                content = (
                    time_ms,
                    dict(zip(keys, struct.unpack_from(f"<{len(keys)}d", payload, 16), strict=True)),
                )
            records.append((type, seq, content))
        return records

    def _unsealed(self) -> list[tuple[int, int, bytes]]:
        frames = []
        for frame in self.frames:
            if frame[0] == 9:
                frames += FileContents(zlib.decompressobj().decompress(frame[2], MAX_BLOCK)).frames
            else:
                frames.append(frame)
        return frames
