"""Sealing: compresses a full segment step by step into a new file, which then replaces it.

A sealed file is a journal file with BLOCK frames, each of them zlib-compressed whole frames with their
sequence numbers. A reader that has the old file open can continue to read it; the new file has the same
records.
"""

from __future__ import annotations

import os
import zlib
from zlib import compress, decompressobj

from runvitals.journal import frames, paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCK = 9  # record type: zlib-compressed frames; its seq is that of the first frame
STEP_BYTES = 64 * 1024
MAX_BLOCK = frames.MAX_PAYLOAD + 1024 * 1024  # maximum size of a decompressed block


class SegmentSealer:
    """Seals a segment in steps of one or two milliseconds.

    Args:
        path: a segment that its writer has closed.

    Raises:
        OSError: the file could not be opened, or the new file could not be created.

    Example:
        >>> sealer = SegmentSealer("/data/runs/abc/monitor.node1.00000.rvj")
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
        """Write the next block. Returns False when the file is sealed.

        After an exception the original file is unchanged; call `abandon`.

        Raises:
            OSError: the new file could not be written.
            ValueError: the file is damaged, which readers should continue to report, or already sealed.
        """
        first_seq, data = self._next_frames()
        if not data:
            self._finish()
            return False
        packed = compress(data, 1)
        if len(packed) < min(len(data), frames.MAX_PAYLOAD):
            data = frames.frame(BLOCK, first_seq, packed)
        while data:
            data = data[os.write(self._out, data) :]
        return True

    def _next_frames(self) -> tuple[int, bytes]:
        """Return the frames of the next block: (number of the first, bytes)."""
        first_seq, size = 0, 0
        pieces: list[bytes] = []
        for item in self._frames:
            if isinstance(item, frames.Damage):
                raise ValueError(f"{self.path} was not sealed: bytes {item.start} to {item.end} are damaged")
            if item.type == BLOCK:
                raise ValueError(f"{self.path} is already sealed")
            if not pieces:
                first_seq = item.seq
            pieces.append(frames.frame(item.type, item.seq, item.payload))
            size += len(pieces[-1])
            if size >= STEP_BYTES:
                break
        return first_seq, b"".join(pieces)

    def _finish(self) -> None:
        os.fsync(self._out)
        self._close()
        os.replace(self._part(), self.path)

    def abandon(self) -> None:
        """Stop, leave the original file unchanged and delete the new one.

        If that fails, for example because the run was deleted, the `.part` file stays, as after a kill.
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
    """Yield the records in part of a file, including those in its blocks.

    Those in a block have the block's offset.

    Damage is skipped without a report.

    Example:
        >>> with open("/data/runs/abc/monitor.node1.19f3a.00000.rvj", "rb") as file:
        ...     head = list(whole_records(file.read(65536)))
    """
    for item in frames.scan(data):
        if isinstance(item, frames.Damage):
            continue
        if item.type != BLOCK:
            yield item
            continue
        try:
            for packed in unpack_block(item.payload):
                packed.offset, packed.end = item.offset, item.end
                yield packed
        except ValueError:
            continue


def unpack_block(payload: bytes) -> Iterator[frames.Frame]:
    """Yield the frames in the payload of a BLOCK frame, with offsets in the decompressed block.

    Does not verify their CRCs, which would take a third of the time: the CRC of the BLOCK covers them.

    Raises:
        ValueError: not zlib, truncated, not whole frames, or larger than `MAX_BLOCK` when decompressed.
    """
    data = _inflate(payload)
    size = len(data)
    end = 0
    while end < size:
        start, body = end, end + frames.HEADER_SIZE
        if body > size:
            raise ValueError("invalid block: its last record is incomplete")
        magic, _, check_and_type, length, seq = frames.HEADER.unpack_from(data, start)
        end = body + length
        if magic != frames.MAGIC or end > size:
            raise ValueError("invalid block: contains bytes that are not a record")
        yield frames.Frame(check_and_type >> 24, seq, data[body:end], start, end)


def _inflate(payload: bytes) -> bytes:
    unpacker = decompressobj()
    try:
        data = unpacker.decompress(payload, MAX_BLOCK)
    except zlib.error as error:
        raise ValueError(f"invalid block: {error}") from None
    if not unpacker.eof:
        raise ValueError(f"invalid block: truncated, or larger than {MAX_BLOCK} bytes when decompressed")
    return data
