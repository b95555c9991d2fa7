"""Sealing: a file that is full is rewritten compressed, a little at a time, and put in the old one's place.

A sealed file is a journal file like any other, with BLOCK frames in it: zlib of a run of whole frames, sequence numbers and all. Readers
that held the old file open read on in it; others find the same records in the new one. 1 Hz of 55 values: 460 bytes a sample raw, about
70 sealed.
"""

from __future__ import annotations

import os
from zlib import compress

from runvitals.journal import frames

BLOCK = 9  # zlib of concatenated frames; its seq is that of the first of them
STEP_BYTES = 64 * 1024


class Sealer:
    """Seals one file in steps of about a millisecond.

    Example:
        >>> sealer = Sealer("/data/runs/abc/monitor.node1.00000.rvj")
        >>> while sealer.step():
        ...     pass
    """

    __slots__ = ("_out", "_position", "_source", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._position = 0
        self._source = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_CLOEXEC", 0)
        self._out = os.open(self._part(), flags, 0o600)

    def _part(self) -> str:
        return self.path + ".part"

    def step(self) -> bool:
        """Seal one more stretch; False when the file is done.

        Raises:
            OSError: the disk would not take it. The unsealed file is untouched; call `abandon`.
            ValueError: the file holds damage, which is left as it is for `runvitals` to report; call `abandon`.
        """
        data = self._whole_frames()
        if not data:
            self._finish()
            return False
        block = frames.frame(BLOCK, self._first_seq(data), compress(data, 1))
        if os.write(self._out, block) != len(block):
            raise OSError(28, "No space left on device", self._part())
        self._position += len(data)
        return True

    def _whole_frames(self) -> bytes:
        wanted = STEP_BYTES
        while True:
            data = os.pread(self._source, wanted, self._position)
            end = 0
            for found in frames.scan(data):
                if isinstance(found, frames.Damage):
                    if not found.torn:
                        raise ValueError(f"{self.path}: bytes {found.start} to {found.end} are damaged; not sealed")
                    break
                end = found.offset + frames.HEADER_SIZE + len(found.payload)
            if end or not data:
                return data[:end]
            if len(data) < wanted:
                raise ValueError(f"{self.path}: ends in half a record; not sealed")
            wanted *= 2  # one record longer than a step

    @staticmethod
    def _first_seq(data: bytes) -> int:
        return int(frames.HEADER.unpack_from(data)[4])

    def _finish(self) -> None:
        os.fsync(self._out)
        self._close()
        os.replace(self._part(), self.path)

    def abandon(self) -> None:
        """Stop, and leave the file as it was."""
        self._close()
        os.unlink(self._part())

    def _close(self) -> None:
        os.close(self._source)
        os.close(self._out)
