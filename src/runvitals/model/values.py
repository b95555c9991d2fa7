"""Values of `log()` rows and facts: which are valid, and what invalid ones are replaced by."""

from __future__ import annotations

from itertools import islice

from runvitals.base.unicode import is_unicode, unicode_text
from runvitals.model.limits import (
    DEPTH,
    INTEGER_BITS,
    RECORD_BYTES,
    RECORD_VALUES,
    ROW_NAMES,
    STEP,
    TEXT_CHARACTERS,
    TIME_MS,
)
from runvitals.model.names import (
    key_fault,
    name_fault,
    sanitized_key,
    sanitized_name,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

_ESCAPED = 6  # bytes of a character in ASCII JSON, of most that are not ASCII
_LONG_BITS = 128
_TYPE_CHARACTERS = 60
_TOO_LARGE = f"more than {RECORD_BYTES} bytes in a record"
_SCALARS = frozenset((bool, float, type(None)))


def valid_step(step: object) -> int | float | None:
    """Return the step of a row if it is a number from -2⁵³ to 2⁵³, else None.

    Example:
        >>> valid_step(3), valid_step(10**400), valid_step(float("nan"))
        (3, None, None)
    """
    if isinstance(step, (int, float)) and not isinstance(step, bool) and -STEP <= step <= STEP:
        return step
    return None


def is_time(value: object) -> bool:
    """Return whether a value is a time in ms UTC that calendars can represent."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < TIME_MS


class Sanitizer:
    """Makes the values of one record valid, and counts what it changed.

    Takes time linear in what it keeps, however large or cyclic the value is. A value of a type that JSON does
    not know, or that is derived from one it knows, may run code that raises: it is replaced by a text, and
    those beside it are kept.

    Args:
        other: called with a value that JSON does not know; the result is sanitized in turn, so it may be a
            list or mapping. By default the value is replaced by the name of its type. It must not raise.

    Attributes:
        faults: description of a fault → how often it occurred.

    Example:
        >>> sanitizer = Sanitizer()
        >>> sanitizer.row({"loss": 0.5, "": 1, "huge": 10**400})
        {'loss': 0.5, '(empty)': 1, 'huge': '(an integer of 1329 bits)'}
        >>> sorted(sanitizer.faults)
        ['an empty name', 'an integer of more than 1023 bits']
    """

    __slots__ = ("_other", "_room", "_values_left", "faults")

    def __init__(self, other: Callable[[object], object] | None = None) -> None:
        self._other = other or _type_of
        self._values_left = RECORD_VALUES
        self._room = RECORD_BYTES
        self.faults: dict[str, int] = {}

    def row(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row of `log()` with valid names and values.

        A value whose corrected name is taken is left out.
        """
        row: dict[str, Any] = {}
        for name, value in data.items():
            if len(row) >= ROW_NAMES:
                self.fault(f"more than {ROW_NAMES} names in a row", len(data) - len(row))
                break
            if fault := name_fault(name):
                self.fault(fault)
                name = sanitized_name(name)
                if name in row or name in data:
                    self.fault(f"a second value for the name {name[:60]!r}")
                    continue
            if not self._has_room(name):
                break
            row[name] = self.value(value, DEPTH - 1)
        return row

    def value(self, value: object, levels: int = DEPTH) -> Any:
        """Return a value that JSON can represent and every reader accepts.

        Args:
            levels: maximum depth of nested mappings and lists.
        """
        if type(value) in _SCALARS:
            return value
        try:
            return self._convert(value, levels)
        except Exception as error:  # noqa: BLE001 - code of the value's own type, which may do anything
            return self.unreadable(value, error)

    def unreadable(self, value: object, error: Exception) -> str:
        """Return the text for a value whose own code has raised an error, which is counted."""
        self.fault(f"a value of type {type_name(value)} that raises {type_name(error)}")
        return f"({type_name(value)}: {type_name(error)})"

    def _convert(self, value: object, levels: int) -> Any:
        if isinstance(value, str):
            # A string of a type derived from `str`, such as a member of an enumeration, without its own code.
            return self._text(str.__str__(value))
        if isinstance(value, int):
            return self._integer(value)
        if isinstance(value, float):
            return float(value)
        if isinstance(value, (dict, list, tuple)):
            return self._inner(value, levels)
        replacement = self._other(value)
        if isinstance(replacement, (str, int, float, dict, list, tuple)) or replacement is None:
            return self.value(replacement, levels)
        return _type_of(replacement)

    def fault(self, text: str, count: int = 1) -> None:
        """Count a fault."""
        self.faults[text] = self.faults.get(text, 0) + count

    def _text(self, text: str) -> str:
        if len(text) > TEXT_CHARACTERS:
            self.fault(f"a text of more than {TEXT_CHARACTERS} characters")
            text = text[: TEXT_CHARACTERS - 1] + "…"
        if len(text) > self._room:
            self.fault(_TOO_LARGE)
            text = text[: self._room // _ESCAPED]
        if not is_unicode(text):
            self.fault("a text with a lone surrogate")
            text = unicode_text(text)
        if not self._has_room(text):
            text = text[: self._room // _ESCAPED]
            self._room -= len(text) * _ESCAPED
        return text

    def _has_room(self, text: str) -> bool:
        """Return whether a text fits in the record; if so, reserve room for it."""
        size = len(text) * (1 if text.isascii() else _ESCAPED)
        if size > self._room:
            self.fault(_TOO_LARGE)
            return False
        self._room -= size
        return True

    def _integer(self, value: int) -> int | str:
        if value.bit_length() > INTEGER_BITS:
            self.fault(f"an integer of more than {INTEGER_BITS} bits")
            return f"(an integer of {value.bit_length()} bits)"
        if value.bit_length() > _LONG_BITS:
            return self._long(value)
        return int(value)

    def _long(self, value: int) -> int | str:
        digits = str(value)
        return int(value) if self._has_room(digits) else f"(an integer of {value.bit_length()} bits)"

    def _inner(self, value: dict[Any, Any] | list[Any] | tuple[Any, ...], levels: int) -> Any:
        if levels < 1:
            self.fault(f"mappings and lists nested more than {DEPTH} levels deep")
            return "(nested too deeply)"
        count = min(len(value), max(self._values_left, 0))
        self._values_left -= count
        if count < len(value):
            self.fault(f"more than {RECORD_VALUES} values in a record", len(value) - count)
        if isinstance(value, dict):
            return self._mapping(_first(value.items(), count), levels)
        return [self.value(item, levels - 1) for item in value[:count]]

    def _mapping(self, items: Iterable[tuple[object, object]], levels: int) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for name, item in items:
            key = name = str.__str__(name) if isinstance(name, str) else self._key_text(name)
            if fault := key_fault(name):
                self.fault(fault)
                key = sanitized_key(name)
            if not self._has_room(key):
                break
            mapping[key] = self.value(item, levels - 1)
        return mapping

    def _key_text(self, key: object) -> str:
        """Return a key that is not a string, as JSON writes it; a tuple by its parts."""
        if key is None:
            return "null"
        if isinstance(key, bool):
            return "true" if key else "false"
        if isinstance(key, (int, float)):
            return str(self.value(key))
        self.fault(f"a key of the type {type_name(key)}")
        if isinstance(key, tuple):
            parts = (self.value(part, 0) for part in key[:16])
            return "(" + ", ".join(part if isinstance(part, str) else repr(part) for part in parts) + ")"
        return str(self.value(key, 0))


def type_name(value: object) -> str:
    """Return the name of a value's type, even if its metaclass raises."""
    name: str = type.__getattribute__(type(value), "__name__")
    return name[:_TYPE_CHARACTERS]


def _type_of(value: object) -> str:
    return f"({type_name(value)})"


def _first(items: Iterable[tuple[object, object]], count: int) -> list[tuple[object, object]]:
    # A single call of C code, so no other thread can change the mapping meanwhile.
    return list(islice(items, count))
