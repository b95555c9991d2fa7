"""User's text, as both databases can hold it.

PostgreSQL's text holds neither NUL nor the halves of surrogate pairs that Python's strings may hold. Names
and the copies that searches use are therefore written with ␀ and � in their place. What a user gave as JSON
(sections of facts, the data of events) is kept as ASCII JSON, where every character has an escape: that
comes back exactly as it was.
"""

from __future__ import annotations

from runvitals.model.limits import LABEL_CHARACTERS
from runvitals.model.names import plain_text

MAX_NAME = LABEL_CHARACTERS
"""Characters that the name of a project, a host or a token may have; also of a metric: 512."""
LAST_CHARACTER = "\U0010ffff"
_INT64 = 2**63


def checked_name(what: str, text: str, longest: int = MAX_NAME) -> str:
    """The name of something, as it is stored.

    Raises:
        ValueError: empty, or too long.
    """
    if not isinstance(text, str) or not 1 <= len(text) <= longest:
        shown = text if not isinstance(text, str) or len(text) <= 60 else f"{text[:60]}…"
        raise ValueError(f"{what} {shown!r}: a text of 1 to {longest} characters is allowed")
    return plain_text(text)


def check_integers(what: str, **numbers: int | None) -> None:
    """
    Raises:
        ValueError: naming the first that is no integer of 64 bits (or None).
    """
    for name, number in numbers.items():
        if number is not None and not (type(number) is int and -_INT64 <= number < _INT64):
            raise ValueError(f"{name} {number!r} of {what}: an integer of at most 64 bits is allowed")
