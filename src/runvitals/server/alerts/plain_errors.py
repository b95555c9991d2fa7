"""Errors of msgspec in plain English."""

from __future__ import annotations

import re
from typing import Final

import msgspec

_WORDS: Final = {
    "`int`": "a whole number",
    "`float`": "a number",
    "`str`": "a text",
    "`bool`": "true or false",
    "`array`": "a list",
    "`object`": "an object",
    "of length >=": "with at least",
    "of length <=": "with at most",
    ">=": "of at least",
    "<=": "of at most",
}
_PATH: Final = re.compile(r" - at `\$\.?([^`]*)`$")


def plain_error(error: msgspec.ValidationError) -> tuple[str, str]:
    """Return which field is invalid, empty for the whole, and why.

    Example:
        >>> plain_error(msgspec.ValidationError("Expected `int` >= 1 - at `$.actions[0].webhook`"))
        ('actions[0].webhook', 'expected a whole number of at least 1')
        >>> plain_error(msgspec.ValidationError("Expected `array` of length >= 1, got `str`"))
        ('', 'expected a list with at least 1, got a text')
    """
    text = str(error)
    where = _PATH.search(text)
    text = _PATH.sub("", text)
    for words, plain in _WORDS.items():
        text = text.replace(words, plain)
    return where[1] if where else "", text[:1].lower() + text[1:]
