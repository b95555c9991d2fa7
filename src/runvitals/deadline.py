"""Deadlines for requests. A thread cannot be stopped from outside, so long computations call `check`
regularly.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_NEVER = float("inf")
_until_s: ContextVar[float] = ContextVar("runvitals_deadline", default=_NEVER)


class TooSlow(Exception):
    """The deadline has passed."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Set a deadline for the block, in this thread.

    Raises:
        TooSlow: from `check`, or instead of any error after the deadline, such as that of an aborted query.

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
        TooSlow: the deadline has passed.
    """
    if passed():
        raise TooSlow


def passed() -> bool:
    """Whether the deadline has passed; False without a deadline."""
    until_s = _until_s.get()
    return until_s is not _NEVER and time.monotonic() > until_s


def left_s() -> float | None:
    """The remaining time, at least a millisecond; None without a deadline."""
    until_s = _until_s.get()
    return None if until_s is _NEVER else max(0.001, until_s - time.monotonic())
