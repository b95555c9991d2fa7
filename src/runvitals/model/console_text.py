"""A program's output as lines that can be shown: without colours, and of a progress bar its last state."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Protocol

_ESCAPES: Final = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -~]?)", re.DOTALL
)
_INVISIBLE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
_LONGEST: Final = 4096


class Piece(Protocol):
    """A record of output, which may start and end within a line."""

    @property
    def time_ms(self) -> int:
        """When it was printed, ms UTC."""

    @property
    def stream(self) -> str:
        """`stdout` or `stderr`."""

    @property
    def text(self) -> str:
        """The output itself."""


@dataclass(frozen=True, slots=True)
class PrintedLine:
    """A line of the output. `text` has no control characters."""

    time_ms: int
    stream: str
    text: str


def printed_lines(pieces: Iterable[Piece]) -> list[PrintedLine]:
    r"""Return the lines of one process that are not blank, in the order in which they began.

    Example:
        >>> pieces = [PrintedLine(1, "stderr", "1 %\r2 %\n\x1b[31mno"), PrintedLine(2, "stderr", " space\n")]
        >>> [line.text for line in printed_lines(pieces)]
        ['2 %', 'no space']
    """
    lines: list[PrintedLine] = []
    begun: dict[str, int] = {}  # where the incomplete line of a stream is
    for piece in pieces:
        first, *others = piece.text.split("\n")
        index = begun.pop(piece.stream, None)
        if index is None:
            index = len(lines)
            lines.append(PrintedLine(piece.time_ms, piece.stream, first))
        else:
            lines[index] = replace(lines[index], text=lines[index].text + first)
        for text in others:
            index = len(lines)
            lines.append(PrintedLine(piece.time_ms, piece.stream, text))
        begun[piece.stream] = index
    readable_lines = (replace(line, text=shown_text(line.text)) for line in lines)
    return [line for line in readable_lines if line.text.strip()]


def shown_text(line: str) -> str:
    """Return a line as a terminal shows it."""
    visible = _ESCAPES.sub("", line).rstrip("\r").rpartition("\r")[2]
    return _INVISIBLE.sub("\N{REPLACEMENT CHARACTER}", visible[:_LONGEST])
