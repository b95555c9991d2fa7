"""Texts that UTF-8 can represent: Python's strings may contain lone surrogates."""

from __future__ import annotations

_SURROGATES: dict[int, str] = {}  # filled when the first text has one, because it takes 140 kB


def is_unicode(text: str) -> bool:
    """Return whether a text can be encoded as UTF-8: it contains no lone surrogate, as Python strings may."""
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def unicode_text(text: str) -> str:
    """Return a text with each lone surrogate replaced by the replacement character."""
    if is_unicode(text):
        return text
    if not _SURROGATES:
        _SURROGATES.update(dict.fromkeys(range(0xD800, 0xE000), "\N{REPLACEMENT CHARACTER}"))
    return text.translate(_SURROGATES)
