"""What the program printed."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from runvitals.journal.records import CONSOLE_HEAD, STREAMS

# A page shows the end of a program's output; all of it stays in the journal.
KEPT_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Printed:
    """A piece of output. Bytes that are not UTF-8 are replaced; a piece may end within a line."""

    time_ms: int
    stream: str
    text: str
    writer: str


def parse(payload: bytes, writer: str) -> Printed:
    """The piece of output in a CONSOLE record."""
    stream, time_ms = CONSOLE_HEAD.unpack_from(payload)
    return Printed(time_ms, STREAMS[stream], payload[CONSOLE_HEAD.size :].decode("utf-8", "replace"), writer)


class Console:
    """The newest output of a run, up to `KEPT_BYTES` characters."""

    def __init__(self) -> None:
        self._pieces: deque[Printed] = deque()
        self._size = 0
        self.cut = False  # older output was let go

    def add(self, piece: Printed) -> None:
        self._pieces.append(piece)
        self._size += len(piece.text)
        while self._size > KEPT_BYTES and len(self._pieces) > 1:
            self._size -= len(self._pieces.popleft().text)
            self.cut = True

    def pieces(self) -> list[Printed]:
        """In order of time, whichever process printed them."""
        return sorted(self._pieces, key=lambda piece: piece.time_ms)
