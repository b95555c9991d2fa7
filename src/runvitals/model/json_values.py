"""Checks of JSON values, wherever they come from: requests, texts within requests, and databases."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from runvitals.base.unicode import is_unicode
from runvitals.model.limits import DEPTH
from runvitals.model.names import plain_text

DAMAGED: Final = "damaged"
"""The only key of the object that stands for a stored one which cannot be read; its value says why."""
_SHOWN: Final = 60
_SURROGATE: Final = "has a lone surrogate; expected text that UTF-8 can encode"
_SCALARS: Final = (type(None), bool, int, float)


class InvalidValue(ValueError):
    """A value that is not allowed.

    Args:
        path: where it is: `config.layers[2]`; empty: it is the whole.
    """

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}" if path else why)
        self.field = re.split(r"[.\[]", path, maxsplit=1)[0]
        """The field of the whole that has it; empty: none."""


def decode(text: bytes | str) -> Any:
    """Return the value of a JSON text, checked.

    Raises:
        json.JSONDecodeError: it is not JSON.
        InvalidValue: the value is not allowed: see `check`.
        ValueError: it has an integer of thousands of digits.

    Example:
        >>> decode('{"lr": 0.1}')
        {'lr': 0.1}
    """
    try:
        value = json.loads(text)
    except RecursionError:
        raise _too_deep("") from None
    check(value)
    return value


def check(value: object, levels: int = DEPTH) -> None:
    """Check a value that was decoded from JSON or MessagePack.

    Args:
        levels: how deep lists and maps may be nested.

    Raises:
        InvalidValue: they are nested too deeply, a key is not a text, a text cannot be encoded as UTF-8, or a
            value is of a type that JSON does not have. It says which, and where.
    """
    _check(value, "", levels)


def damage_of(value: Any) -> str | None:
    """Return why a stored object could not be read, if this one stands for it; else None."""
    fault = value.get(DAMAGED) if isinstance(value, dict) and len(value) == 1 else None
    return fault if isinstance(fault, str) else None


def _check(value: object, path: str, levels: int) -> None:
    if isinstance(value, str):
        if not is_unicode(value):
            raise _invalid(path, f"a text {_SURROGATE}")
    elif isinstance(value, dict):
        if levels < 1:
            raise _too_deep(path)
        for key, item in value.items():
            if not isinstance(key, str):
                raise _invalid(path, f"the key {str(key)[:_SHOWN]} is not a text; expected one")
            if not is_unicode(key):
                raise _invalid(path, f"the key {plain_text(key)[:_SHOWN]!r} {_SURROGATE}")
            if type(item) not in _SCALARS:
                _check(item, f"{path}.{key[:_SHOWN]}" if path else key[:_SHOWN], levels - 1)
    elif isinstance(value, list):
        if levels < 1:
            raise _too_deep(path)
        for index, item in enumerate(value):
            if type(item) not in _SCALARS:
                _check(item, f"{path}[{index}]", levels - 1)
    elif not isinstance(value, _SCALARS):
        raise _invalid(path, f"a value of type {type(value).__name__}, which JSON does not have")


def _too_deep(path: str) -> InvalidValue:
    return _invalid(path, f"lists and maps are nested too deeply; expected at most {DEPTH} levels")


def _invalid(path: str, why: str) -> InvalidValue:
    return InvalidValue(path[:_SHOWN], why)
