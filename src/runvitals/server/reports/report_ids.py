"""Ids of reports in addresses: numbers, or what W&B's clients make of them."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

_MAX_ID: Final = 2**31 - 1
_KIND: Final = "View"
_NOT_IN_SLUG: Final = re.compile(r"[\W_]+")
_MAX_SLUG: Final = 80


def report_number(text: str) -> int | None:
    """Return the number of a report; None for anything else.

    Example:
        >>> report_number("12"), report_number("Vmlldzo4"), report_number("x")
        (12, 8, None)
    """
    if text.isascii() and text.isdigit() and len(text) <= 10:
        number = int(text)
    else:
        try:
            decoded = base64.b64decode(text + "=" * (-len(text) % 4), validate=True).decode("ascii")
        except (binascii.Error, UnicodeDecodeError, ValueError):
            return None
        kind, _, digits = decoded.partition(":")
        if kind != _KIND or not digits.isdigit() or len(digits) > 10:
            return None
        number = int(digits)
    return number if number <= _MAX_ID else None


def slug_of(title: str) -> str:
    """Return a title as a part of an address.

    Example:
        >>> slug_of("Which learning rate?"), slug_of("???")
        ('Which-learning-rate', 'report')
    """
    return _NOT_IN_SLUG.sub("-", title)[:_MAX_SLUG].strip("-") or "report"
