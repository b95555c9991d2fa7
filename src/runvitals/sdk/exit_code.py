"""The exit code that follows from an exception."""

from __future__ import annotations

_INTERRUPTED = 130  # Python then exits by SIGINT; shells report that as 128 + 2


def exit_code_of(kind: type[BaseException], error: BaseException | None) -> int:
    """The exit code Python would use if this exception propagated."""
    if issubclass(kind, KeyboardInterrupt):
        return _INTERRUPTED
    if not issubclass(kind, SystemExit):
        return 1
    code = getattr(error, "code", None)
    if code is None:
        return 0
    return code if isinstance(code, int) else 1
