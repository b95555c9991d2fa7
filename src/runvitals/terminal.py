"""Makes untrusted text safe for a terminal, in characters that the terminal can show."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

# ASCII replacements for the other characters in our own texts.
_IN_ASCII = str.maketrans({
    "…": "...", "–": "-", "—": "-", "×": "x", "÷": "/", "°": "", "µ": "u", "≥": ">=", "≤": "<=", "·": "-",
    "→": "->", "█": "#", "░": ".",
})  # fmt: skip
_SAMPLE = "█▏▁°…"
_LAYOUT = str.maketrans("", "", "\n\t")


def inert(text: object) -> str:
    """Untrusted text with control and invisible characters escaped.

    Example:
        >>> inert("a\\x1b[31mred\\n")
        'a\\\\x1b[31mred\\\\n'
    """
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in str(text))


def harmless(text: str) -> str:
    """Like `inert`, but keeps newlines and tabs.

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
    """Wraps a text stream and escapes control characters in what is written to it."""

    def __init__(self, stream: TextIO) -> None:
        self.raw = stream

    def write(self, text: str) -> int:
        """Write text with control and invisible characters escaped."""
        self.raw.write(harmless(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


def raw(stream: TextIO) -> TextIO:
    """The unwrapped stream, for our own control characters and for data that is not shown in a terminal."""
    return stream.raw if isinstance(stream, Harmless) else stream


@contextmanager
def harmless_output() -> Iterator[None]:
    """Escape control characters in everything written to stdout and stderr.

    Stays in effect if an exception propagates, because Python prints it later.
    """
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (
        stream if stream is None else cast(TextIO, Harmless(raw(stream)))
        for stream in (sys.stdout, sys.stderr)
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
    """Whether the stream's encoding supports our non-ASCII characters, such as block elements and degrees."""
    try:
        _SAMPLE.encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def fitting(text: str, stream: TextIO) -> str:
    """The text in characters that the stream supports; others are replaced, or become `?`.

    Example:
        >>> fitting("85 °C …", io.TextIOWrapper(io.BytesIO(), "ascii"))
        '85 C ...'
    """
    return text if shows_unicode(stream) else in_ascii(text)


def in_ascii(text: str) -> str:
    """The text in ASCII; characters without a replacement become `?`.

    Example:
        >>> in_ascii("8 × 85 °C, 学習")
        '8 x 85 C, ??'
    """
    return text.translate(_IN_ASCII).encode("ascii", "replace").decode()
