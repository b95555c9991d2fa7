"""Errors in the configuration of a sweep."""

from __future__ import annotations

from typing import Final, TypeGuard

_MAX_PROBLEMS: Final = 10
_MAX_SHOWN: Final = 60
_MAX_FLOAT: Final = 1e300
"""Differences and sums of some larger numbers are infinite."""


class Problems:
    """Collects problems, up to a limit: the first ones are enough for a user to go on."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def add(self, where: str, what: str) -> None:
        """Note what is wrong with a part of the configuration, unless there are enough problems already."""
        if len(self.texts) < _MAX_PROBLEMS:
            self.texts.append(f"{where}: {what}")


def shorten(value: object) -> str:
    """A value for a message."""
    if value is None:
        return "missing"
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether a value is a number that calculations can use."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return abs(value) < 2**53 if isinstance(value, int) else abs(value) <= _MAX_FLOAT
