"""The exit code that follows from an exception, or that a script passes to `finish`."""

from __future__ import annotations

from operator import index
from typing import SupportsIndex

from runvitals.model.limits import INT64

_OUT_OF_RANGE = 255
_INTERRUPTED = 130  # Python then exits by SIGINT; shells report that as 128 + 2


def exit_code_of(kind: type[BaseException], error: BaseException | None) -> int:
    """Return the exit code Python would use if this exception propagated."""
    if issubclass(kind, KeyboardInterrupt):
        return _INTERRUPTED
    if not issubclass(kind, SystemExit):
        return 1
    code = getattr(error, "code", None)
    if code is None:
        return 0
    return valid_exit_code(code) if isinstance(code, int) else 1


def valid_exit_code(code: SupportsIndex | None) -> int:
    """Return an exit code that fits in a record: 0 for None, 255 for a number beyond 64 bits.

    Raises:
        TypeError: not an integer.

    Example:
        >>> valid_exit_code(None), valid_exit_code(True), valid_exit_code(10**30)
        (0, 1, 255)
    """
    if code is None:
        return 0
    if not hasattr(code, "__index__"):
        raise TypeError(f"finish(): exit_code must be an integer, not {code!r:.80}")
    number = index(code)
    return number if -INT64 <= number < INT64 else _OUT_OF_RANGE
