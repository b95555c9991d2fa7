"""The output of a run as lines that are safe for a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from runvitals.base.terminal_text import inert
from runvitals.readers.journals.console import ConsoleText

MAX_LINES = 2000
# Colours, cursor movements, and titles or links up to their end: they belong to another terminal.
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")


class SafeLine(NamedTuple):
    """A line of the output that is safe for a terminal, and when its end was printed, in ms UTC."""

    time_ms: float
    text: str


def console_lines(pieces: Iterable[ConsoleText]) -> list[SafeLine]:
    r"""Return the last lines of the output; of a line that was overwritten, the last text.

    Example:
        >>> lines = console_lines([ConsoleText(0, "stdout", "1 %\r2 %\n\x1b[31mred", "console.a")])
        >>> [line.text for line in lines]
        ['2 %', 'red']
    """
    open_lines: dict[tuple[str, str], SafeLine] = {}
    lines: list[SafeLine] = []
    for piece in pieces:
        writer = (piece.writer, piece.stream)
        before = open_lines[writer].text if writer in open_lines else ""
        *ended, rest = (before + piece.text).split("\n")
        lines += [SafeLine(piece.time_ms, safe_line(text)) for text in ended]
        open_lines[writer] = SafeLine(piece.time_ms, rest)
    lines += [line._replace(text=safe_line(line.text)) for line in open_lines.values() if line.text]
    return lines[-MAX_LINES:]


def safe_line(text: str) -> str:
    r"""Return one line without terminal control sequences, other control characters escaped.

    Example:
        >>> safe_line("\x1b]0;title\x07loss\t0.5\x00")
        'loss    0.5\\x00'
    """
    last_part = text.rstrip("\r").rpartition("\r")[2]
    return inert(_SEQUENCE.sub("", last_part).expandtabs(8))
