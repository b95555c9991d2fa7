"""Regular expressions of queries, bounded: Python's may take exponential time."""

from __future__ import annotations

import re
from typing import Final

from runvitals.server.doors.promql.syntax import QueryError

_MAX_CHARACTERS: Final = 5000
_MAX_REPETITIONS: Final = 3
"""In one alternative. A text of n characters takes at most n³ steps."""
_REPEATED_GROUP = re.compile(r"\)[*+{]|\)\?[*+{]")
_REPETITION = re.compile(r"(?<!\\)[*+{]")
_REFERENCE = re.compile(r"\\[1-9]|\(\?(?!:|i\))")


def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern for the whole of a text.

    Raises:
        QueryError: it is invalid, or may take long.
    """
    shown = pattern[:100]
    if len(pattern) > _MAX_CHARACTERS:
        raise QueryError(f"a pattern of {len(pattern)} characters; at most {_MAX_CHARACTERS} are allowed")
    if _REPEATED_GROUP.search(pattern) or _REFERENCE.search(pattern):
        raise QueryError(
            f"the pattern {shown!r} is not supported: no repeated groups, references or look-around"
        )
    if any(len(_REPETITION.findall(part)) > _MAX_REPETITIONS for part in pattern.split("|")):
        raise QueryError(f"the pattern {shown!r} is not supported: more than {_MAX_REPETITIONS} repetitions")
    try:
        return re.compile(pattern, re.DOTALL)
    except (re.error, RecursionError, OverflowError) as error:
        raise QueryError(f"invalid pattern {shown!r}: {error}") from None
