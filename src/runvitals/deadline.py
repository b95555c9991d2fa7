"""How long a question may take: whoever works on a long answer looks, in every turn, whether it is in time.

A thread cannot be stopped from outside, so a slow answer ends only where it looks.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_NEVER = float("inf")
_until_s: ContextVar[float] = ContextVar("runvitals_deadline", default=_NEVER)


class TooSlow(Exception):
    """A question takes longer than it may."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """What is done here, in this thread, takes so long at most.

    Raises:
        TooSlow: by `check`, or in place of what a database says of a query that it was made to end.

    Example:
        >>> with within(10):
        ...     for run in runs:
        ...         check()
    """
    token = _until_s.set(time.monotonic() + seconds)
    try:
        yield
    except Exception as error:
        if passed() and not isinstance(error, TooSlow):
            raise TooSlow from error
        raise
    finally:
        _until_s.reset(token)


def check() -> None:
    """
    Raises:
        TooSlow: the time is over.
    """
    if passed():
        raise TooSlow


def passed() -> bool:
    """Whether the time is over. Without a deadline it never is."""
    until_s = _until_s.get()
    return until_s is not _NEVER and time.monotonic() > until_s


def left_s() -> float | None:
    """How much time is left, at least a millisecond; None without a deadline."""
    until_s = _until_s.get()
    return None if until_s is _NEVER else max(0.001, until_s - time.monotonic())
