"""Makes users' text storable in both databases.

PostgreSQL's text cannot contain NUL or the surrogates that Python strings may contain. In names and search
copies they are replaced by ␀ and �. What a user gave as JSON (sections of facts, the data of events) is
stored as ASCII JSON, which can escape every character, and is returned exactly as it was.
"""

from __future__ import annotations

from runvitals.model.hidden_characters import without_hidden_characters
from runvitals.model.limits import LABEL_CHARACTERS
from runvitals.model.names import plain_text

MAX_NAME = LABEL_CHARACTERS
"""Maximum length of the name of a project, a host or a token; of a metric: 512."""
LAST_CHARACTER = "\U0010ffff"
_INT64 = 2**63


def checked_name(what: str, text: str, longest: int = MAX_NAME) -> str:
    """Return a name as it is stored; raise ValueError if it is empty or too long."""
    if not isinstance(text, str) or not 1 <= len(text) <= longest:
        excerpt = text if not isinstance(text, str) or len(text) <= 60 else f"{text[:60]}…"
        raise ValueError(f"invalid {what} {excerpt!r}; expected a string of 1 to {longest} characters")
    return plain_text(text)


def checked_new_name(what: str, text: str, longest: int = MAX_NAME) -> str:
    """Return a name that a user gives as it is stored.

    Raises:
        ValueError: it is empty or too long, or could pass for another one as it has characters that are not
            seen.
    """
    return without_hidden_characters(what, checked_name(what, text, longest))


def check_integers(what: str, **numbers: int | None) -> None:
    """Raise ValueError for the first value that is not a 64-bit integer or None."""
    for name, number in numbers.items():
        if number is not None and not (type(number) is int and -_INT64 <= number < _INT64):
            raise ValueError(f"invalid {name} {number!r} of {what}; expected an integer of at most 64 bits")
