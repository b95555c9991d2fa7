"""Sealing: a file that is full is rewritten compressed, a little at a time, and put in the old one's place.

A sealed file is a journal file like any other, with BLOCK frames in it: zlib of a run of whole frames,
sequence numbers and all. Readers that hold the old file open read on in it; others find the same records in
the new one.
"""

from __future__ import annotations

import os
from zlib import compress, decompressobj
from zlib import error as ZlibError

from runvitals.journal import frames, paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCK = 9  # zlib of concatenated frames; its seq is that of the first of them
STEP_BYTES = 64 * 1024
MAX_BLOCK = frames.MAX_PAYLOAD + 1024 * 1024  # what a block may unpack to, however small it is packed


class Sealer:
    """Seals one file in steps of one or two milliseconds.

    Args:
        path: a file that nobody writes to any more.

    Raises:
        OSError: the file cannot be opened, or none be made beside it.

    Example:
        >>> sealer = Sealer("/data/runs/abc/monitor.node1.00000.rvj")
        >>> while sealer.step():
        ...     pass
    """

    __slots__ = ("_frames", "_out", "_source", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._source = os.open(path, os.O_RDONLY | paths.OPEN_FLAGS)
        try:
            self._out = os.open(self._part(), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | paths.OPEN_FLAGS, 0o600)
        except OSError:
            os.close(self._source)
            raise
        self._frames = frames.scan_file(self._source)

    def _part(self) -> str:
        return self.path + ".part"

    def step(self) -> bool:
        """Seal one more stretch; False when the file is done.

        Raises:
            OSError: the disk would not take it. The unsealed file is untouched; call `abandon`.
            ValueError: the file holds damage, which stays as it is for readers to report, or it is sealed
                already; call `abandon`.
        """
        first_seq, data = self._stretch()
        if not data:
            self._finish()
            return False
        packed = compress(data, 1)
        if len(packed) < min(len(data), frames.MAX_PAYLOAD):
            data = frames.frame(BLOCK, first_seq, packed)
        while data:
            data = data[os.write(self._out, data) :]
        return True

    def _stretch(self) -> tuple[int, bytes]:
        """(number of the first, bytes) of the frames that make the next block."""
        first_seq, size = 0, 0
        pieces: list[bytes] = []
        for found in self._frames:
            if isinstance(found, frames.Damage):
                where = f"bytes {found.start} to {found.end}"
                raise ValueError(f"{self.path} is left unsealed: {where} hold no whole record")
            if found.type == BLOCK:
                raise ValueError(f"{self.path} is sealed already")
            if not pieces:
                first_seq = found.seq
            pieces.append(frames.frame(found.type, found.seq, found.payload))
            size += len(pieces[-1])
            if size >= STEP_BYTES:
                break
        return first_seq, b"".join(pieces)

    def _finish(self) -> None:
        os.fsync(self._out)
        self._close()
        os.replace(self._part(), self.path)

    def abandon(self) -> None:
        """Stop, and leave the file as it was. What was written beside it goes too, unless that cannot
        be deleted, or the whole folder has been: then it is rubbish, as after a kill.
        """
        try:
            self._close()
            os.unlink(self._part())
        except OSError:
            return

    def _close(self) -> None:
        source, out, self._source, self._out = self._source, self._out, -1, -1
        try:
            if out >= 0:
                os.close(out)
        finally:
            if source >= 0:
                os.close(source)


def whole_records(data: bytes) -> Iterator[frames.Frame]:
    """The records in a stretch of a file, those in its blocks too, which have their block's offset.

    Damage is passed over: the reader reports it.

    Example:
        >>> with open("/data/runs/abc/monitor.node1.19f3a.00000.rvj", "rb") as file:
        ...     head = list(whole_records(file.read(65536)))
    """
    for found in frames.scan(data):
        if isinstance(found, frames.Damage):
            continue
        if found.type != BLOCK:
            yield found
            continue
        try:
            for packed in unpack_block(found.payload):
                packed.offset, packed.end = found.offset, found.end
                yield packed
        except ValueError:
            continue


def unpack_block(payload: bytes) -> Iterator[frames.Frame]:
    """The frames in a BLOCK frame's payload, with offsets in the block.

    Does not compute their CRCs: that of the BLOCK vouches for them, and it would cost a third of the time.

    Raises:
        ValueError: what is not zlib, is cut short, holds anything else than frames, or would unpack to more
            than `MAX_BLOCK` bytes.
    """
    data = _inflate(payload)
    size = len(data)
    end = 0
    while end < size:
        start, body = end, end + frames.HEADER_SIZE
        if body > size:
            raise ValueError("a block that ends in half a record")
        magic, _, check_and_type, length, seq = frames.HEADER.unpack_from(data, start)
        end = body + length
        if magic != frames.MAGIC or end > size:
            raise ValueError("a block that holds something else than records")
        yield frames.Frame(check_and_type >> 24, seq, data[body:end], start, end)


def _inflate(payload: bytes) -> bytes:
    unpacker = decompressobj()
    try:
        data = unpacker.decompress(payload, MAX_BLOCK)
    except ZlibError as error:
        raise ValueError(f"a block that cannot be unpacked: {error}") from None
    if not unpacker.eof:
        raise ValueError(f"a block that is cut short, or holds more than {MAX_BLOCK} bytes")
    return data
