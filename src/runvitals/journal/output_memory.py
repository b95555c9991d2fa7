r"""What a process prints, in memory that its monitor reads: nothing is lost if the process is killed.

An anonymous file in memory::

    offset  size  field
    0       8     head: bytes that were written to the ring so far, little-endian
    8       8     how many of them the monitor has read
    16      8     how many bytes of the children's output it has read
    24      16    where it continues in the files that stdout and stderr are written to, two times 8
    40      RING  the ring: what the process prints
    …       …     what forked children print, appended up to CHILDREN_BYTES

Text in ring and children's output is UTF-8 in pieces. A piece begins with a NUL and the number of its stream,
as a digit. The process only copies memory (0.3 µs a piece). If it prints more than the ring holds before the
monitor reads, the oldest is lost.
"""

from __future__ import annotations

import os

HEAD = slice(0, 8)
RING_AT = 40
RING_BYTES = 128 * 1024
CHILDREN_AT = RING_AT + RING_BYTES
CHILDREN_BYTES = 1024 * 1024
STREAMS = (1, 2)
"""stdout and stderr."""
_READ_AT, _CHILDREN_READ_AT, _FILE_POSITION_AT = 8, 16, 24
_MOST_AT_ONCE = 64 * 1024


def file_position_at(stream: int) -> int:
    """Return where the memory has the position in the file of a stream."""
    return _FILE_POSITION_AT + 8 * (stream - 1)


def piece(stream: int, text: str) -> bytes:
    r"""Return text as a piece; of a long one the end.

    Example:
        >>> piece(2, "no\n")
        b'\x002no\n'
    """
    data = text[-RING_BYTES // 8 :].encode("utf-8", "replace")
    if b"\0" in data:
        data = data.replace(b"\0", b"?")
    return b"\0%d%s" % (stream, data)


class OutputMemory:
    """The reader's side of the memory. What was read is not returned again, also after a restart.

    Args:
        fd: of the memory, which this object owns.

    Attributes:
        dropped: bytes of the ring that were overwritten before they were read.

    Raises:
        OSError: it is not such a memory.
    """

    __slots__ = ("_fd", "_stream", "dropped")

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._stream = STREAMS[1]  # of what has no piece's beginning, as Python's report of a fatal signal
        self.dropped = 0
        if os.fstat(fd).st_size < CHILDREN_AT:
            raise OSError("not a memory of output")

    def read(self) -> list[tuple[int, bytes]]:
        """Return what is new, as (stream, bytes) in order."""
        head, read_end = self._number(0), self._number(_READ_AT)
        pieces: list[tuple[int, bytes]] = []
        if head != read_end:
            data = self._range(max(read_end, head - RING_BYTES), head)
            # What the process has written meanwhile replaced the oldest.
            kept_from = max(read_end, self._number(0) - RING_BYTES)
            data = data[max(0, kept_from - max(read_end, head - RING_BYTES)) :]
            self.dropped += kept_from - read_end
            if kept_from > read_end:  # in the middle of a piece
                data = data[max(0, data.find(b"\0")) :]
            self._set_number(_READ_AT, head)
            pieces = self._split(data)
        return pieces + self._of_children()

    def file_position(self, stream: int) -> int:
        """Return where reading the file of a stream continues."""
        return self._number(file_position_at(stream))

    def set_file_position(self, stream: int, position: int) -> None:
        """Note up to where the file of a stream was read."""
        self._set_number(file_position_at(stream), position)

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._fd)

    def _of_children(self) -> list[tuple[int, bytes]]:
        read_end = self._number(_CHILDREN_READ_AT)
        data = os.pread(self._fd, _MOST_AT_ONCE, CHILDREN_AT + read_end)
        if not data:
            return []
        self._set_number(_CHILDREN_READ_AT, read_end + len(data))
        pieces = self._split(data)
        self._stream = pieces[-1][0] if pieces else self._stream
        return pieces

    def _range(self, start: int, end: int) -> bytes:
        first, length = start % RING_BYTES, end - start
        data = os.pread(self._fd, min(length, RING_BYTES - first), RING_AT + first)
        return data + os.pread(self._fd, length - len(data), RING_AT) if len(data) < length else data

    def _split(self, data: bytes) -> list[tuple[int, bytes]]:
        begun, *parts = data.split(b"\0")
        pieces = [(self._stream, begun)] if begun else []
        return pieces + [
            (part[0] - ord("0"), part[1:]) for part in parts if part and part[0] - ord("0") in STREAMS
        ]

    def _number(self, at: int) -> int:
        return int.from_bytes(os.pread(self._fd, 8, at), "little")

    def _set_number(self, at: int, number: int) -> None:
        os.pwrite(self._fd, number.to_bytes(8, "little"), at)
