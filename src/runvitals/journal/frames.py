r"""Frames: the units of a journal file. `docs/concepts/journal.md` specifies the format byte by byte.

A frame is a header of 24 bytes and a payload::

    offset  size  field
    0       4     magic   b"\xf5RV1"
    4       4     crc     CRC-32 (zlib) of bytes 11 … end of the payload, little-endian
    8       3     check   the low 24 bits of the CRC-32 of bytes 11 … 23, little-endian
    11      1     type    one of the constants below
    12      4     length  of the payload, unsigned, little-endian
    16      8     seq     unsigned, little-endian: 0, 1, 2 … within one writer
    24      …     payload

`check` validates the length even if the payload is damaged or incomplete. So a reader never searches for
records inside a payload, which may contain anything; only after a damaged header does it search for the next
magic. For the same reason it computes at most one CRC over each byte, even of a crafted file.
"""

from __future__ import annotations

import os
from errno import ENXIO
from struct import Struct
from zlib import crc32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MAGIC = b"\xf5RV1"
HEADER = Struct("<4sIIIQ")  # the third field is check | type << 24
HEADER_SIZE = HEADER.size
_SIGNED = Struct("<BIQ")
_SIGNED_FROM = 11
_CHECK_BITS = 0xFFFFFF
MAX_PAYLOAD = 16 * 1024 * 1024

# Record types. Readers skip unknown types.
START = 1  # JSON: the writer and its run; always the first record of a file
SCHEMA = 2  # JSON: {"id": n, "keys": [...]}; before the first sample that uses it
SAMPLE = 3  # binary: see `samples.py`
HISTORY = 4  # JSON: one `log()` call
CONSOLE = 5  # binary: console output of the program
EVENT = 6  # JSON: an alert, a failure, a marker …
LIFECYCLE = 7  # JSON: attach, finish, exit, gap, end
INFO = 8  # JSON: facts about the run or the machine; later records override earlier ones key by key
# 9 is BLOCK: see `sealing.py`
MEDIA = 10  # JSON: images, tables, audio … logged under a name at a step; their files lie beside the journal

_WINDOW = 256 * 1024
# One byte more than the longest frame, to see whether the file continues after it.
_MAX_WINDOW = HEADER_SIZE + MAX_PAYLOAD + 1


class Frame:
    """A valid frame: `payload` of a record, at bytes `[offset, end)` of its file."""

    __slots__ = ("end", "offset", "payload", "seq", "type")

    def __init__(self, type: int, seq: int, payload: bytes, offset: int, end: int) -> None:
        self.type = type
        self.seq = seq
        self.payload = payload
        self.offset = offset
        self.end = end


class Damage:
    """A byte range `[start, end)` of a file without a valid frame.

    Attributes:
        torn: the range is an incomplete frame at the end of the file: it is being written, or its writer died
            during the write.
    """

    __slots__ = ("end", "start", "torn")

    def __init__(self, start: int, end: int, torn: bool) -> None:
        self.start = start
        self.end = end
        self.torn = torn


def frame(type: int, seq: int, payload: bytes) -> bytes:
    """Encode a record for one `write()`.

    Raises:
        ValueError: the payload is larger than 16 MiB, which no reader would accept.
    """
    length = len(payload)
    if length > MAX_PAYLOAD:
        raise ValueError(f"record of {length} bytes is too large; at most {MAX_PAYLOAD} are allowed")
    signed = crc32(_SIGNED.pack(type, length, seq))
    check_and_type = signed & _CHECK_BITS | type << 24
    return HEADER.pack(MAGIC, crc32(payload, signed), check_and_type, length, seq) + payload


def scan(data: bytes, position: int = 0, base: int = 0) -> Iterator[Frame | Damage]:
    """Yield the frames from `position` on, and the damage between them. Takes linear time for any input.

    An incomplete frame at the end comes last, as torn damage. A reader of a live file continues from its
    start when the file has grown.

    Args:
        data: the content of a file, or a part of it.
        position: where to begin in `data`.
        base: added to every offset yielded.

    Example:
        >>> [f.payload for f in scan(frame(EVENT, 0, b"{}") + frame(EVENT, 1, b"[]"))]
        [b'{}', b'[]']
    """
    size = len(data)
    damaged_from = -1
    while size - position >= HEADER_SIZE:
        magic, crc, check_and_type, length, seq = HEADER.unpack_from(data, position)
        body = position + HEADER_SIZE
        signed = crc32(data[position + _SIGNED_FROM : body])
        if magic == MAGIC and signed & _CHECK_BITS == check_and_type & _CHECK_BITS and length <= MAX_PAYLOAD:
            end = body + length
            payload = data[body:end]
            if end <= size and crc32(payload, signed) == crc:
                if damaged_from >= 0:
                    yield Damage(base + damaged_from, base + position, torn=False)
                    damaged_from = -1
                yield Frame(check_and_type >> 24, seq, payload, base + position, base + end)
                position = end
                continue
            if end >= size:
                break  # being written; or a crash left the file with its new length but without all its pages
        else:
            end = _next_magic(data, position + 1)
            if end == size and data.count(0, position) == size - position:
                break  # after a crash, or on a network file system, a file can grow before its bytes arrive
        if damaged_from < 0:
            damaged_from = position
        position = end
    if damaged_from >= 0:
        yield Damage(base + damaged_from, base + position, torn=False)
    if position < size:
        yield Damage(base + position, base + size, torn=True)


def _next_magic(data: bytes, position: int) -> int:
    """The offset of the next magic, of its first bytes if the data ends within it, or else of the end."""
    start = data.find(MAGIC, position)
    if start >= 0:
        return start
    size = len(data)
    for start in range(max(position, size - len(MAGIC) + 1), size):
        if MAGIC.startswith(data[start:]):
            return start
    return size


def scan_file(fd: int, position: int = 0) -> Iterator[Frame | Damage]:
    """`scan` an open file from byte `position` to its end. Offsets are those in the file.

    Uses 256 KiB of memory, or as much as the longest frame.

    Raises:
        OSError: the file could not be read.
    """
    window = _WINDOW
    damaged_from = -1
    at_end = False
    while not at_end:
        data = _read_at(fd, position, window)
        at_end = len(data) < window
        torn_from = end = position + len(data)
        for item in scan(data, 0, position):
            if isinstance(item, Frame):
                if damaged_from >= 0:
                    yield Damage(damaged_from, item.offset, torn=False)
                    damaged_from = -1
                yield item
            elif item.torn:
                torn_from = item.start
            elif damaged_from < 0:
                damaged_from = item.start
        if torn_from == position and not at_end:
            hole_end = _next_data(fd, position)
            if hole_end - position >= _MAX_WINDOW:
                # A sparse file may have terabytes of zeros: skip them without reading.
                if damaged_from < 0:
                    damaged_from = position
                position, window = hole_end, _WINDOW
                continue
            if window < _MAX_WINDOW:
                window = min(2 * window, _MAX_WINDOW)
                continue
            torn_from = end  # no frame is this long: these are zeros that more bytes follow
            if damaged_from < 0:
                damaged_from = position
        position = torn_from
        window = _WINDOW
    if damaged_from >= 0:
        yield Damage(damaged_from, position, torn=False)
    if position < end:
        yield Damage(position, end, torn=True)


def _next_data(fd: int, position: int) -> int:
    """Return the offset of a file's next data at or after `position`, or of its end if only a hole follows.

    `position` itself if the system does not report holes (Windows, some network file systems).
    """
    try:
        return os.lseek(fd, position, os.SEEK_DATA)
    except AttributeError:
        return position
    except OSError as error:
        return os.lseek(fd, 0, os.SEEK_END) if error.errno == ENXIO else position


def _read_at(fd: int, position: int, size: int) -> bytes:
    """Read `size` bytes, or fewer at the end of the file. Windows has no `pread`."""
    os.lseek(fd, position, os.SEEK_SET)
    data = os.read(fd, size)
    while len(data) < size:
        more = os.read(fd, size - len(data))
        if not more:
            break
        data += more
    return data
