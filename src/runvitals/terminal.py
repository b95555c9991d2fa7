"""What a terminal may be sent: other people's text made harmless, in signs that it can show."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

# What our own texts hold beyond ASCII, and what stands for it where it cannot be shown.
_IN_ASCII = str.maketrans({
    "…": "...", "–": "-", "—": "-", "×": "x", "÷": "/", "°": "", "µ": "u", "≥": ">=", "≤": "<=", "·": "-",
    "→": "->", "█": "#", "░": ".",
})  # fmt: skip
_SAMPLE = "█▏▁°…"
_LAYOUT = str.maketrans("", "", "\n\t")


def inert(text: object) -> str:
    """Text from elsewhere, with everything a terminal would obey or hide written out.

    Example:
        >>> inert("a\\x1b[31mred\\n")
        'a\\\\x1b[31mred\\\\n'
    """
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in str(text))


def harmless(text: str) -> str:
    """As `inert`, of text that may have lines and tabs.

    Example:
        >>> harmless("a\\x1b[31mred\\n")
        'a\\\\x1b[31mred\\n'
    """
    if text.translate(_LAYOUT).isprintable():
        return text
    if "\r\n" in text:  # as lines end in CSV
        return "\r\n".join(map(harmless, text.split("\r\n")))
    return "".join(char if char in "\n\t" else inert(char) for char in text)


class Harmless:
    """A text stream to which only harmless text comes through; else it is the stream that it is given."""

    def __init__(self, stream: TextIO) -> None:
        self.raw = stream

    def write(self, text: str) -> int:
        """Write text, with everything that a terminal would obey or hide written out."""
        self.raw.write(harmless(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write text after text."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


def raw(stream: TextIO) -> TextIO:
    """The stream itself, for our own control characters, and for data that no terminal sees."""
    return stream.raw if isinstance(stream, Harmless) else stream


@contextmanager
def harmless_output() -> Iterator[None]:
    """Let nothing but harmless text through stdout and stderr, whoever prints it.

    Where an error is on its way it stays so, for Python tells it after us.
    """
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (
        one if one is None else cast(TextIO, Harmless(raw(one))) for one in (sys.stdout, sys.stderr)
    )
    try:
        yield
    except Exception:
        raise
    except BaseException:
        sys.stdout, sys.stderr = before
        raise
    sys.stdout, sys.stderr = before


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
