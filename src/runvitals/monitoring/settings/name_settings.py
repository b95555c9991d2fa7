"""Names that a training gives: none may end it.

Any text may be a display name. An identifier is made valid, with a warning.
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

from runvitals.base.unicode import unicode_text
from runvitals.model.names import can_be_addressed, has_control_characters

DISPLAY_CHARACTERS = 1000
"""Of a display name; the rest is left out."""
IDENTIFIER_CHARACTERS = 128
_ID = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")
_SEPARATORS = str.maketrans({"/": "-", "\\": "-"})


def display_name(value: Any) -> str | None:
    r"""Return a display name on one line; None if there is nothing of it to show.

    Example:
        >>> display_name("meta-llama/Llama-3\n8B"), display_name("  ")
        ('meta-llama/Llama-3 8B', None)
    """
    return one_line(_text_of(value))[:DISPLAY_CHARACTERS].rstrip() or None


def display_names(values: Any) -> list[str]:
    """Return display names, such as tags, without those that are empty."""
    names = [values] if isinstance(values, (str, int, float)) else list(values)
    return [name for name in map(display_name, names) if name is not None]


def project_identifier(value: Any) -> str:
    """Return a valid name of a project or team that is as close as possible to the one given.

    Example:
        >>> project_identifier("org/vision"), project_identifier("..")
        ('org-vision', 'default')
    """
    name = one_line(_text_of(value)).translate(_SEPARATORS)[:IDENTIFIER_CHARACTERS].strip()
    return name if name and can_be_addressed(name) else "default"


def team_identifier(value: Any) -> str | None:
    """Return the same for a team or user, whose default is chosen by the server."""
    return project_identifier(value) if one_line(_text_of(value)) else None


def run_identifier(value: Any) -> str:
    """Return a valid id of a run for one that is not; ids that differ stay different.

    Example:
        >>> run_identifier("my run/1")
        'my-run-1-8ee8c7b1'
    """
    text = _text_of(value)
    plain = "".join(letter if letter in _ID else "-" for letter in text).lstrip(".-")
    checksum = f"{crc32(text.encode('utf-8', 'replace')):08x}"
    return f"{plain[: IDENTIFIER_CHARACTERS - 9]}-{checksum}" if plain else f"run-{checksum}"


def one_line(text: str) -> str:
    """Return a text with its control characters and line breaks as spaces, and its blanks as single ones."""
    plain = unicode_text(text)
    if has_control_characters(plain) or not plain.isprintable():
        plain = "".join(" " if has_control_characters(letter) else letter for letter in plain)
    return " ".join(plain.split())


def _text_of(value: Any) -> str:
    return value if isinstance(value, str) else str(value)
