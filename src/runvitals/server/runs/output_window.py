"""The output of a run around a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from runvitals.server.library.run_library import ConsolePiece


@dataclass(slots=True)
class OutputWindow:
    """Output before a time and from it on, as much as fits on each side.

    Attributes:
        cut: older output was left out.
        more: newer output was left out.
    """

    time_ms: int
    half: int
    before: list[ConsolePiece] = field(default_factory=list)
    after: list[ConsolePiece] = field(default_factory=list)
    sizes: list[int] = field(default_factory=lambda: [0, 0])
    cut: bool = False
    more: bool = False

    def add(self, piece: ConsolePiece) -> None:
        """Add a piece of any time."""
        is_after = piece.time_ms >= self.time_ms
        side = self.after if is_after else self.before
        side.append(piece)
        self.sizes[is_after] += len(piece.text)
        if self.sizes[is_after] > 2 * self.half and len(side) > 1:
            self.trim(is_after)

    def trim(self, is_after: bool) -> None:
        """Leave out what does not fit on a side."""
        side = self.after if is_after else self.before
        side.sort(key=lambda piece: piece.time_ms, reverse=not is_after)
        kept_count = _count_within(side, self.half)
        if kept_count < len(side):
            self.more, self.cut = self.more or is_after, self.cut or not is_after
            del side[kept_count:]
        self.sizes[is_after] = sum(len(piece.text) for piece in side)

    def pieces(self) -> list[ConsolePiece]:
        """Return what is kept, in order of time."""
        return sorted([*self.before, *self.after], key=lambda piece: piece.time_ms)


def _count_within(pieces: Sequence[ConsolePiece], size: int) -> int:
    """Return how many pieces have this size together, at least one."""
    for count, piece in enumerate(pieces):
        size -= len(piece.text)
        if size < 0:
            return max(1, count)
    return len(pieces)


def output_around(pieces: Iterable[ConsolePiece], time_ms: int, max_bytes: int) -> OutputWindow:
    """Return the output around a time, half of it before."""
    window = OutputWindow(time_ms, max(1, max_bytes // 2))
    for piece in pieces:
        window.add(piece)
    for is_after in (False, True):
        window.trim(is_after)
    return window
