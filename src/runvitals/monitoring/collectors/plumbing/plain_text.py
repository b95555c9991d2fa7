"""Programs' output as plain text, without what is meant for terminals."""

from __future__ import annotations


def text_of(output: bytes) -> str:
    r"""The output as text, without terminal colours and a byte order mark. Invalid UTF-8 is replaced.

    Example:
        >>> text_of(b"\x1b[31mGPU\x1b[0m 0: 45\xc2\xb0C")
        'GPU 0: 45°C'
    """
    return without_escapes(output.decode("utf-8", "replace").removeprefix("\ufeff"))


def without_escapes(text: str) -> str:
    """A text without terminals' escape sequences."""
    first, *others = text.split("\x1b")
    return first + "".join(_after_escape(part) for part in others)


def _after_escape(text: str) -> str:
    r"""The text after an escape sequence: "[31mred", "]0;title\a", or a single letter."""
    if text[:1] == "]":
        return text.partition("\a")[2]
    end = 1
    if text[:1] == "[":
        while end < len(text) and not "@" <= text[end] <= "~":
            end += 1
        end += 1
    return text[end:]
