"""Programs' output as plain text, without what is meant for terminals, and excerpts of it for messages."""

from __future__ import annotations

# Enough for a tool's name, its version, and the header of its table.
MAX_LINES, MAX_CHARACTERS = 8, 400


def text_of(output: bytes) -> str:
    r"""Return the output as text, without terminal colours and a byte order mark. Invalid UTF-8 is replaced.

    Example:
        >>> text_of(b"\x1b[31mGPU\x1b[0m 0: 45\xc2\xb0C")
        'GPU 0: 45°C'
    """
    return without_escapes(output.decode("utf-8", "replace").removeprefix("\ufeff"))


def without_escapes(text: str) -> str:
    """Return a text without terminals' escape sequences."""
    first, *others = text.split("\x1b")
    return first + "".join(_after_escape(part) for part in others)


def _after_escape(text: str) -> str:
    r"""Return the text after an escape sequence: "[31mred", "]0;title\a", or a single letter."""
    if text[:1] == "]":
        return text.partition("\a")[2]
    end = 1
    if text[:1] == "[":
        while end < len(text) and not "@" <= text[end] <= "~":
            end += 1
        end += 1
    return text[end:]


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
