"""What a terminal may be sent: other people's text made harmless, in signs that it can show."""

from __future__ import annotations

from typing import TextIO

# What our own texts hold beyond ASCII, and what stands for it where it cannot be shown.
_IN_ASCII = str.maketrans({
    "…": "...", "–": "-", "—": "-", "×": "x", "÷": "/", "°": "", "µ": "u", "≥": ">=", "≤": "<=", "·": "-",
    "→": "->", "█": "#", "░": ".",
})  # fmt: skip
_SAMPLE = "█▏▁°…"


def inert(text: object) -> str:
    """Text from elsewhere, with everything a terminal would obey or hide written out.

    Example:
        >>> inert("a\\x1b[31mred\\n")
        'a\\\\x1b[31mred\\\\n'
    """
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in str(text))


def shows_unicode(stream: TextIO) -> bool:
    """Whether what is written there may hold more than ASCII: block elements, degrees, dots."""
    try:
        _SAMPLE.encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def fitting(text: str, stream: TextIO) -> str:
    """The text in signs that a stream takes; what has no likeness becomes `?`.

    Example:
        >>> fitting("85 °C …", io.TextIOWrapper(io.BytesIO(), "ascii"))
        '85 C ...'
    """
    return text if shows_unicode(stream) else in_ascii(text)


def in_ascii(text: str) -> str:
    """The text in ASCII; what has no likeness becomes `?`.

    Example:
        >>> in_ascii("8 × 85 °C, 学習")
        '8 x 85 C, ??'
    """
    return text.translate(_IN_ASCII).encode("ascii", "replace").decode()
