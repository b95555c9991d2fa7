"""Regular expressions of queries, bounded: Python's may take exponential time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from runvitals.server.doors.promql.syntax import QueryError

_MAX_CHARACTERS: Final = 5000
_MAX_CHOICES: Final = 3
"""Repetitions, and groups with alternatives, in one alternative of the whole. A text of n characters takes at
most n³ steps for each way through the groups."""
_MAX_WAYS: Final = 1000
"""Through the groups with alternatives, of one alternative of the whole."""
_REPEATED_GROUP = re.compile(r"\)[*+{]|\)\?[*+{]")
_PIECE = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?i\)|\((?:\?:)?|[)|]|(?:[*+?]|\{[^}]*\}?)\??", re.DOTALL
)
_REPEATS: Final = ("*", "+", "?", "{")
_REFERENCE = re.compile(r"\\[1-9]|\(\?(?!:|i\))")


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return a pattern for the whole of a text.

    Raises:
        QueryError: it is invalid, or may take long.
    """
    excerpt = pattern[:100]
    if len(pattern) > _MAX_CHARACTERS:
        raise QueryError(f"a pattern of {len(pattern)} characters; at most {_MAX_CHARACTERS} are allowed")
    if _REPEATED_GROUP.search(pattern) or _REFERENCE.search(pattern):
        raise QueryError(
            f"the pattern {excerpt!r} is not supported: no repeated groups, references or look-around"
        )
    if _may_take_long(pattern):
        raise QueryError(
            f"the pattern {excerpt!r} is not supported: more than {_MAX_CHOICES} repetitions and groups with "
            f"alternatives, or more than {_MAX_WAYS} combinations of these"
        )
    try:
        return re.compile(pattern, re.DOTALL)
    except (re.error, RecursionError, OverflowError) as error:
        raise QueryError(f"invalid pattern {excerpt!r}: {error}") from None


def _may_take_long(pattern: str) -> bool:
    """Return whether an alternative of a pattern has too many choices, which multiply."""
    pieces = [piece[0] for piece in _PIECE.finditer(pattern)]
    groups: list[int] = []  # the alternatives of each group that is open
    outer_depth = 1 if _is_one_group(pattern, pieces) else 0
    choices, ways = 0, 1
    for piece in pieces:
        if piece in ("(", "(?:"):
            groups.append(1)
        elif piece == ")" and groups:
            alternatives = groups.pop()
            if alternatives > 1 and len(groups) >= outer_depth:
                choices, ways = choices + 1, ways * alternatives
        elif piece == "|" and len(groups) <= outer_depth:
            choices, ways = 0, 1
        elif piece == "|":
            groups[-1] += 1
        elif piece.startswith(_REPEATS):
            choices += 1
        if choices > _MAX_CHOICES or ways > _MAX_WAYS:
            return True
    return False


def _is_one_group(pattern: str, pieces: Sequence[str]) -> bool:
    """Return whether the first parenthesis of a pattern opens a group that the last one closes."""
    if not (pattern.startswith("(") and pieces[0] != "(?i)" and pieces[-1] == ")" and pattern.endswith(")")):
        return False
    depth = 0
    for piece in pieces[:-1]:
        depth += (piece in ("(", "(?:")) - (piece == ")")
        if depth == 0:
            return False
    return True
