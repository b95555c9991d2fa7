"""The output of a run as lines that are safe for a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable

from runvitals.query.console import ConsoleText
from runvitals.terminal import inert

MOST_LINES = 2000
# Colours, cursor movements, and titles or links up to their end: they belong to another terminal.
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")


def console_lines(pieces: Iterable[ConsoleText]) -> list[str]:
    """The last lines of the output. Of a line that was overwritten, as progress bars do, the last text.

    Example:
        >>> console_lines([ConsoleText(0, "stdout", "1 %\\r2 %\\n\\x1b[31mred", "console.a")])
        ['2 %', 'red']
    """
    texts: dict[tuple[str, str], list[str]] = {}
    lines: list[str] = []
    for piece in pieces:
        open_text = texts.setdefault((piece.writer, piece.stream), [""])
        parts = (open_text[0] + piece.text).split("\n")
        lines += map(safe_line, parts[:-1])
        open_text[0] = parts[-1]
    lines += [safe_line(text) for (text,) in texts.values() if text]
    return lines[-MOST_LINES:]


def safe_line(text: str) -> str:
    """One line without the sequences that control a terminal; other control characters are escaped.

    Example:
        >>> safe_line("\\x1b]0;title\\x07loss\\t0.5\\x00")
        'loss    0.5\\\\x00'
    """
    shown = text.rstrip("\r").rpartition("\r")[2]
    return inert(_SEQUENCE.sub("", shown).expandtabs(8))
