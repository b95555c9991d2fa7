"""Frames: how records lie in a journal file. `docs/concepts/journal.md` is the same in words, byte by byte.

A frame is 24 bytes of header and a payload::

    offset  size  what
    0       4     magic   b"\xf5RV1"
    4       4     crc     CRC-32 (zlib) of bytes 11 … end of the payload, little-endian
    8       3     check   the low 24 bits of the CRC-32 of bytes 11 … 23, little-endian
    11      1     type    one of the constants below
    12      4     length  of the payload, unsigned, little-endian
    16      8     seq     unsigned, little-endian: 0, 1, 2 … within one writer
    24      …     payload

`check` makes a length trustworthy even where the payload is damaged or not yet there. So a reader never looks
for records inside a payload, whatever its bytes look like; only a damaged header makes it search for the next
magic. And no bytes, however contrived, make it compute more than one CRC over each of them.
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

# Record types. A reader skips types it does not know.
START = 1  # JSON: who writes this file; always the first record of a file
SCHEMA = 2  # JSON: {"id": n, "keys": [...]}; before the first sample that uses it
SAMPLE = 3  # binary: see `samples.py`
HISTORY = 4  # JSON: one `log()` call
CONSOLE = 5  # binary: output of the program
EVENT = 6  # JSON: something happened: alert, gap, failure, marker
LIFECYCLE = 7  # JSON: attach, finish, exit, end …
INFO = 8  # JSON: facts about the run or the machine; later records override earlier ones key by key
# 9 is BLOCK: see `sealing.py`

_WINDOW = 256 * 1024
_MAX_WINDOW = HEADER_SIZE + MAX_PAYLOAD + 1  # one byte past the longest frame tells whether it was the last


class Frame:
    """One record as it lies in a file."""

    __slots__ = ("end", "offset", "payload", "seq", "type")

    def __init__(self, type: int, seq: int, payload: bytes, offset: int, end: int) -> None:
        self.type = type
        self.seq = seq
        self.payload = payload
        self.offset = offset
        self.end = end


class Damage:
    """A stretch of a file that holds no valid frame: `[start, end)` in bytes.

    `torn` is an end that is not (yet) a whole frame: it is being written, or its writer died in it.
    """

    __slots__ = ("end", "start", "torn")

    def __init__(self, start: int, end: int, torn: bool) -> None:
        self.start = start
        self.end = end
        self.torn = torn


def frame(type: int, seq: int, payload: bytes) -> bytes:
    """A record's bytes, ready for one `write()`.

    Raises:
        ValueError: a payload over 16 MiB, which no reader would accept.
    """
    length = len(payload)
    if length > MAX_PAYLOAD:
        raise ValueError(f"a record holds at most {MAX_PAYLOAD} bytes; this one has {length}")
    signed = crc32(_SIGNED.pack(type, length, seq))
    check_and_type = signed & _CHECK_BITS | type << 24
    return HEADER.pack(MAGIC, crc32(payload, signed), check_and_type, length, seq) + payload


def scan(data: bytes, position: int = 0, base: int = 0) -> Iterator[Frame | Damage]:
    """All frames from `position` on, in order, with the damage between them; in linear time, whatever it is.

    An end that is not a whole frame comes last, as torn damage: a live file's reader keeps its start and
    tries again when there is more. `base` is added to every offset reported.

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
                break  # it is being written; or it has its length, but a crash came before all of its pages
        else:
            end = _next_magic(data, position + 1)
            if end == size and data.count(0, position) == size - position:
                break  # a crash, or a network file system, can let a file grow before the bytes come
        if damaged_from < 0:
            damaged_from = position
        position = end
    if damaged_from >= 0:
        yield Damage(base + damaged_from, base + position, torn=False)
    if position < size:
        yield Damage(base + position, base + size, torn=True)


def _next_magic(data: bytes, position: int) -> int:
    """Where the next magic starts, or as much of one as the end of the data leaves room for, or the end."""
    found = data.find(MAGIC, position)
    if found >= 0:
        return found
    size = len(data)
    for start in range(max(position, size - len(MAGIC) + 1), size):
        if MAGIC.startswith(data[start:]):
            return start
    return size


def scan_file(fd: int, position: int = 0) -> Iterator[Frame | Damage]:
    """`scan` of an open file from byte `position` to its end, with offsets in the file.

    Holds 256 KiB of it at a time, or as much as its longest frame.

    Raises:
        OSError: the file cannot be read.
    """
    window = _WINDOW
    damaged_from = -1
    at_end = False
    while not at_end:
        data = _read_at(fd, position, window)
        at_end = len(data) < window
        torn_from = end = position + len(data)
        for found in scan(data, 0, position):
            if isinstance(found, Frame):
                if damaged_from >= 0:
                    yield Damage(damaged_from, found.offset, torn=False)
                    damaged_from = -1
                yield found
            elif found.torn:
                torn_from = found.start
            elif damaged_from < 0:
                damaged_from = found.start
        if torn_from == position and not at_end:
            behind_hole = _next_data(fd, position)
            if behind_hole - position >= _MAX_WINDOW:
                # A sparse file may have terabytes of zeros: pass over them unread.
                if damaged_from < 0:
                    damaged_from = position
                position, window = behind_hole, _WINDOW
                continue
            if window < _MAX_WINDOW:
                window = min(2 * window, _MAX_WINDOW)
                continue
            torn_from = end  # no frame is that long: these are zeros, with more bytes behind them
            if damaged_from < 0:
                damaged_from = position
        position = torn_from
        window = _WINDOW
    if damaged_from >= 0:
        yield Damage(damaged_from, position, torn=False)
    if position < end:
        yield Damage(position, end, torn=True)


def _next_data(fd: int, position: int) -> int:
    """Where a file's next data begins, or its end: beyond `position` if a hole begins there. `position` where
    the system cannot tell (Windows, some network file systems).
    """
    try:
        return os.lseek(fd, position, os.SEEK_DATA)
    except AttributeError:
        return position
    except OSError as error:
        return os.lseek(fd, 0, os.SEEK_END) if error.errno == ENXIO else position


def _read_at(fd: int, position: int, size: int) -> bytes:
    """`size` bytes of a file, or what there is of them. No `pread`: Windows has none."""
    os.lseek(fd, position, os.SEEK_SET)
    data = os.read(fd, size)
    while len(data) < size:
        more = os.read(fd, size - len(data))
        if not more:
            break
        data += more
    return data
