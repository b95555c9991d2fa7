"""Text in tables that people open in a spreadsheet."""

from __future__ import annotations

_FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
"""The last four are the same signs in full width, which Japanese and Chinese spreadsheets read alike."""


def inert_cell(text: str) -> str:
    """A text that no spreadsheet runs as a formula: it gets a leading apostrophe, unless it is a number.

    Example:
        >>> inert_cell("=cmd|'/C calc'!A0"), inert_cell("-1.5"), inert_cell("a=b"), inert_cell("\uff1d1+1")
        ("'=cmd|'/C calc'!A0", '-1.5', 'a=b', "'\uff1d1+1")
    """
    return f"'{text}" if text.startswith(_FORMULA) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
