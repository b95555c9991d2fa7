"""What a program printed, as a message quotes it."""

from __future__ import annotations

# Enough for a tool's name, its version, and the header of its table.
MOST_LINES, MOST_LETTERS = 8, 400


def first_lines(output: bytes | str) -> str:
    """The first lines in which something is said, without the frames around them; "nothing" without any.

    Example:
        >>> first_lines(b"+------+\\n| ACME-SMI   4.0 |\\n|======|\\n| No devices |\\n")
        "'ACME-SMI 4.0', 'No devices'"
    """
    text = output.decode("utf-8", "replace") if isinstance(output, bytes) else output
    lines: list[str] = []
    for line in text[: 16 * MOST_LETTERS].splitlines():
        said = " ".join(line.strip(" \t|+").split())
        if any(letter.isalnum() or letter == "\ufffd" for letter in said):
            lines.append("".join(letter if letter.isprintable() else "\ufffd" for letter in said))
        if len(lines) == MOST_LINES:
            break
    return ", ".join(f"'{line}'" for line in lines)[:MOST_LETTERS] or "nothing"
