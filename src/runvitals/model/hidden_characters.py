"""Characters that are not seen, with which one name could pass for another."""

from __future__ import annotations

import unicodedata
from typing import Final

_HIDDEN: Final = frozenset(("Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Zs"))
"""Categories: controls, formats (zero width, reversed text), spaces, and what has no form of its own."""
_SPACES: Final = frozenset(" \u3000")
"""Those that keyboards give; others pass for the first one."""
_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks by their category, which show nothing."""
_JOINING: Final = frozenset("\u200c\u200d\ufe0e\ufe0f")
"""Part of letters in some scripts, and of emoji: they follow a character that is not ASCII."""
_SELECTORS: Final = frozenset((*range(0xFE00, 0xFE0E), *range(0xE0100, 0xE01F0)))
"""Codes of characters that choose a form of the one before."""


def has_hidden_characters(text: str) -> bool:
    r"""Return whether a text has characters that are invisible or reverse text, or nothing but spaces.

    Example:
        >>> [has_hidden_characters(text) for text in ("caf\u00e9", "caf\u200be", " ")]
        [False, True, True]
    """
    if text.isspace():
        return True
    if text.isascii() and text.isprintable():
        return False
    before = ""
    for letter in text:
        if letter in _JOINING:
            if not before or before.isascii():
                return True
        elif _is_hidden(letter):
            return True
        before = letter
    return False


def _is_hidden(letter: str) -> bool:
    if letter in _BLANK or ord(letter) in _SELECTORS:
        return True
    return letter not in _SPACES and unicodedata.category(letter) in _HIDDEN


def without_hidden_characters(what: str, name: str) -> str:
    """Return a name, or raise ValueError if `has_hidden_characters`."""
    if name.isspace():
        raise ValueError(f"invalid {what} {name[:60]!a}; it has only spaces")
    if has_hidden_characters(name):
        raise ValueError(f"invalid {what} {name[:60]!a}; it contains a control or invisible character")
    return name
