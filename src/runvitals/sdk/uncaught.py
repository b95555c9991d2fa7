"""Describes the exception that ends a training, for an event. Loaded when there is one."""

from __future__ import annotations

import traceback
from typing import Any, Final

_FRAMES: Final = 40  # of each exception; the innermost
_MOST_CHARACTERS: Final = 16 * 1024
_MOST_OF_MESSAGE: Final = 4000


def exception_event(error: Exception) -> dict[str, Any]:
    """Return the fields of an event about an exception.

    Example:
        >>> exception_event(ValueError("bad shape"))["text"]
        'ValueError: bad shape'
    """
    name = exception_name(type(error))
    message = _message(error)[:_MOST_OF_MESSAGE]
    return {
        "name": "exception",
        "level": "error",
        "text": f"{name}: {message}" if message else name,
        "type": name,
        "message": message,
        "traceback": _traceback(error)[-_MOST_CHARACTERS:],
    }


def exception_name(kind: type[BaseException]) -> str:
    """Return the name of an exception's class as Python prints it: with its module, unless it is built in."""
    return (
        kind.__qualname__
        if kind.__module__ in ("builtins", "__main__")
        else (f"{kind.__module__}.{kind.__qualname__}")
    )


def _message(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - the class of a script, whose method may raise anything
        return "<its text cannot be read>"


def _traceback(error: Exception) -> str:
    try:
        lines = traceback.TracebackException.from_exception(error, limit=-_FRAMES).format()
        return "".join(lines)
    except Exception:  # noqa: BLE001 - code of the script runs here: `__str__`, `__notes__`, sources
        return ""
