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
# Characters that Python counts as printable, but terminals show as nothing.
_INVISIBLE = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0"
    + "".join(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
)
_MARKS = frozenset(("Mn", "Me"))
_MAX_MARKS = 3  # on a character; natural languages have up to three


def inert(text: object) -> str:
    r"""Untrusted text with control and invisible characters escaped, and marks that pile up on a character.

    Example:
        >>> inert("a\x1b[31mred\n")
        'a\\x1b[31mred\\n'
    """
    shown = str(text)
    if shown.isascii() and shown.isprintable():
        return shown
    import unicodedata  # 1 MB that plain text does not need

    characters, marks = [], _MAX_MARKS  # a mark at the beginning would change what is before the text
    for char in shown:
        marks = marks + 1 if unicodedata.category(char) in _MARKS else 0
        is_visible = char.isprintable() and char not in _INVISIBLE and marks <= _MAX_MARKS
        characters.append(char if is_visible else ascii(char)[1:-1])
    return "".join(characters)


def harmless(text: str) -> str:
    r"""Like `inert`, but keeps newlines and tabs.

    Example:
        >>> harmless("a\x1b[31mred\n")
        'a\\x1b[31mred\n'
    """
    if text.isascii() and text.translate(_LAYOUT).isprintable():
        return text
    if "\r\n" in text:  # as lines end in CSV
        return "\r\n".join(map(harmless, text.split("\r\n")))
    return "\n".join("\t".join(map(inert, line.split("\t"))) for line in text.split("\n"))


def display_width(text: str) -> int:
    r"""The number of columns that a text occupies: wide East Asian characters take two, marks on others none.

    Example:
        >>> display_width("学習"), display_width("cafe\u0301")
        (4, 4)
    """
    return len(text) if text.isascii() else sum(map(char_width, text))


def char_width(char: str) -> int:
    """Return the number of columns that a character occupies."""
    import unicodedata

    if unicodedata.category(char) in _MARKS:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cut(text: str, width: int) -> str:
    """Return the text, cut at a width with an ellipsis.

    Example:
        >>> cut("学習 run", 6)
        '学習…'
    """
    if display_width(text) <= width:
        return text
    columns_left, end = width - 1, 0
    while end < len(text) and char_width(text[end]) <= columns_left:
        columns_left -= char_width(text[end])
        end += 1
    return text[:end].rstrip() + "…"


class Harmless:
    """Wraps a text stream and escapes control characters in what is written to it."""

    def __init__(self, stream: TextIO) -> None:
        self.raw = stream

    def write(self, text: str) -> int:
        """Write text with control and invisible characters escaped, and those replaced that have no code."""
        safe_text = harmless(text)
        try:
            self.raw.write(safe_text)
        except UnicodeEncodeError:  # LC_ALL=C
            encoding = self.raw.encoding or "ascii"
            self.raw.write(safe_text.translate(_IN_ASCII).encode(encoding, "replace").decode(encoding))
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
    """Return whether the stream's encoding has our non-ASCII characters, such as block elements."""
    try:
        _SAMPLE.encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def fitting(text: str, stream: TextIO) -> str:
    """Return the text in characters that the stream supports; others are replaced, or become `?`.

    Example:
        >>> fitting("85 °C …", io.TextIOWrapper(io.BytesIO(), "ascii"))
        '85 C ...'
    """
    return text if shows_unicode(stream) else in_ascii(text)


def in_ascii(text: str) -> str:
    """Return the text in ASCII; characters without a replacement become `?`.

    Example:
        >>> in_ascii("8 × 85 °C, 学習")
        '8 x 85 C, ??'
    """
    return text.translate(_IN_ASCII).encode("ascii", "replace").decode()
