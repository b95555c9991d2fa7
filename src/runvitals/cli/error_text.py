"""The text of an error that ends a command."""

from __future__ import annotations

import errno

_FULL = frozenset((errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)))
_SQLITE_FULL = 13


def error_text(error: Exception) -> str:
    """Return the text of an error without its number; for a full disk also the remedy.

    Example:
        >>> error_text(FileNotFoundError(2, "No such file or directory", "/data/runs"))
        '/data/runs: No such file or directory'
    """
    if isinstance(error, LookupError) and error.args:
        text = str(error.args[0])
    elif isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    else:
        text = str(error)
    if _is_disk_full(error):
        text += "; free disk space, or choose a folder on another disk"
    return text


def _is_disk_full(error: BaseException | None) -> bool:
    while error is not None:
        if getattr(error, "errno", None) in _FULL or getattr(error, "sqlite_errorcode", None) == _SQLITE_FULL:
            return True
        error = error.__cause__
    return False
