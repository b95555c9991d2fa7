"""Deadlines for requests.

A thread cannot be stopped from outside, so long computations call `check` regularly. They end too when the
client has left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_NEVER = float("inf")
_until_s: ContextVar[float] = ContextVar("runvitals_deadline", default=_NEVER)
_has_left: ContextVar[Callable[[], bool] | None] = ContextVar("runvitals_client_has_left", default=None)


class TooSlow(Exception):
    """The deadline has passed."""


class ClientLeft(TooSlow):
    """Nobody waits for the result any more."""


@contextmanager
def while_connected(has_left: Callable[[], bool] | None) -> Iterator[None]:
    """End work that has a deadline also when the client has left.

    This holds for the block, and for the threads and tasks that it starts.

    Args:
        has_left: None: the work goes on, because it changes something, or others wait for it too.
    """
    token = _has_left.set(has_left)
    try:
        yield
    finally:
        _has_left.reset(token)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Set a deadline for the block, in this thread.

    Raises:
        TooSlow, ClientLeft: from `check`, or instead of any error after that, such as of an aborted query.

    Example:
        >>> with within(10):
        ...     for run in runs:
        ...         check()
    """
    token = _until_s.set(time.monotonic() + seconds)
    try:
        yield
    except Exception as error:
        if has_passed() and not isinstance(error, TooSlow):
            raise _reason() from error
        raise
    finally:
        _until_s.reset(token)


def check() -> None:
    """Raise TooSlow if the deadline has passed, or ClientLeft if the client has left."""
    if has_passed():
        raise _reason()


def has_passed() -> bool:
    """Return whether the deadline has passed, or the client has left; False without a deadline."""
    until_s = _until_s.get()
    return until_s is not _NEVER and (time.monotonic() > until_s or _nobody_waits())


def _reason() -> TooSlow:
    return ClientLeft() if _nobody_waits() else TooSlow()


def _nobody_waits() -> bool:
    has_left = _has_left.get()
    return has_left is not None and has_left()


def left_s() -> float | None:
    """Return the remaining time, at least a millisecond; None without a deadline."""
    until_s = _until_s.get()
    return None if until_s is _NEVER else max(0.001, until_s - time.monotonic())
