"""A program's recorded console output."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from runvitals.journal.records import CONSOLE_HEAD, STREAMS

# The page shows the end of the output; the journal has all of it.
KEPT_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class ConsoleText:
    """One record of output. Invalid UTF-8 is replaced; a record may end in the middle of a line."""

    time_ms: int
    stream: str
    text: str
    writer: str
    host: str = ""
    rank: int | None = None


def parse(payload: bytes, writer: str, host: str = "", rank: int | None = None) -> ConsoleText:
    """Return the output in a CONSOLE record of a process."""
    stream, time_ms = CONSOLE_HEAD.unpack_from(payload)
    text = payload[CONSOLE_HEAD.size :].decode("utf-8", "replace")
    return ConsoleText(time_ms, STREAMS[stream], text, writer, host, rank)


class Console:
    """The last characters of a run's output, at most `max_size` or one piece."""

    def __init__(self, max_size: int = KEPT_BYTES) -> None:
        self._max_size = max_size
        self._pieces: deque[ConsoleText] = deque()
        self._size = 0
        self.cut = False  # whether older output was dropped

    def add(self, piece: ConsoleText) -> None:
        """Add a piece, and drop the oldest ones that exceed the size."""
        self._pieces.append(piece)
        self._size += len(piece.text)
        while self._size > self._max_size and len(self._pieces) > 1:
            self._size -= len(self._pieces.popleft().text)
            self.cut = True

    def pieces(self) -> list[ConsoleText]:
        """Return the output of all processes, ordered by time."""
        return sorted(self._pieces, key=lambda piece: piece.time_ms)
