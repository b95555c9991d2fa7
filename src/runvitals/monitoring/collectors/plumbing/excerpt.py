"""Excerpts of a program's output, for use in messages."""

from __future__ import annotations

from runvitals.monitoring.collectors.plumbing.plain_text import text_of, without_escapes

# Enough for a tool's name, its version, and the header of its table.
MAX_LINES, MAX_CHARACTERS = 8, 400


def first_lines(output: bytes | str) -> str:
    r"""The first lines that contain text, quoted, without the borders of tables; "nothing" if there are none.

    Example:
        >>> first_lines(b"+------+\n| ACME-SMI   4.0 |\n|======|\n| No devices |\n")
        "'ACME-SMI 4.0', 'No devices'"
    """
    text = text_of(output) if isinstance(output, bytes) else without_escapes(output)
    lines: list[str] = []
    for line in text[: 16 * MAX_CHARACTERS].splitlines():
        words = " ".join(line.strip(" \t|+").split())
        if any(letter.isalnum() or letter == "\ufffd" for letter in words):
            lines.append("".join(letter if letter.isprintable() else "\ufffd" for letter in words))
        if len(lines) == MAX_LINES:
            break
    return ", ".join(f"'{line}'" for line in lines)[:MAX_CHARACTERS] or "nothing"
