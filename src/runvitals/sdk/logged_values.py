"""Converts the values passed to `log()`, `alert()`, `mark()` and `config` to valid record values.

No value may break the training. A value that cannot be recorded is replaced by a short text, and such changes
are counted. `runvitals.model` defines what is valid.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, MutableSequence
from itertools import islice
from typing import Any

from runvitals.model.limits import DEPTH, INT64, RECORD_VALUES, ROW_NAMES
from runvitals.model.names import name_fault
from runvitals.model.values import Sanitizer, type_name
from runvitals.sdk.arrays import as_plain, is_histogram, is_masked
from runvitals.sdk.media.base import ArrayHistogram, is_media

_SHORT_TEXT = 1000
_SIMPLE_NAMES = 1000  # a row of this many names cannot exceed a record's size
_KNOWN_NAMES = 20_000
_MAX_ENTRIES = RECORD_VALUES + 1
_FAULTS = 20  # kinds of faults reported separately
# How often to retry reading a mapping that another thread is changing.
_ATTEMPTS = 5
_MAX_TAGS = 1000
_TAG_CHARACTERS = 128
_NESTED = 16  # levels of mappings that become dotted names; deeper mappings stay values

Entries = list[tuple[object, object]]


class Values:
    """Converts a script's values to valid record values.

    Args:
        report: called with a description of each kind of fault, the first time it occurs.

    Attributes:
        faults: description of a fault → how often it occurred.

    Example:
        >>> Values(print).row({"loss": 0.5, "layer": {"lr": numpy.float32(0.1)}, "note": {1, 2}})
        {'loss': 0.5, 'layer.lr': 0.10000000149011612, 'note': [1, 2]}
    """

    __slots__ = ("_report", "_valid_names", "faults")

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._valid_names: set[str] = set()
        self.faults: dict[str, int] = {}

    def row(self, data: Mapping[str, Any], media: list[tuple[str, object]] | None = None) -> dict[str, Any]:
        """Convert a row of `log()`; nested mappings become dotted names. 1 µs for a dozen numbers.

        Args:
            media: collects images, tables and so on, which are not part of the row, and the histograms of
                long arrays, which are.

        Raises:
            TypeError: `data` is not a mapping.
        """
        if type(data) is dict:
            row = self._simple(data)
            if row is not None:
                return row
        elif not isinstance(data, Mapping):
            raise TypeError(f"log(): expected a mapping of names to values, not {type_name(data)}")
        sanitizer = _sanitizer()
        flat: dict[str, Any] = {}
        for name, value in _leaves(data, sanitizer):
            if media is not None and is_media(value):
                media.append((name, value))
            else:
                if name in flat:
                    sanitizer.fault(f"a second value for the name {name[:60]!r}")
                flat[name] = plain_value = sanitizer.value(value, DEPTH - 1)
                if media is not None and is_histogram(plain_value):
                    media.append((name, ArrayHistogram(plain_value)))
        names = Sanitizer()
        row = names.row(flat)
        self._note({**sanitizer.faults, **names.faults})
        return row

    def facts(self, changes: Mapping[Any, Any]) -> dict[str, Any]:
        """Convert entries of `config` or `summary`; nested mappings stay nested."""
        sanitizer = _sanitizer()
        facts = {
            name: sanitizer.value(value, DEPTH - 1) for name, value in _named_entries(changes, sanitizer)
        }
        record_sanitizer = Sanitizer()  # of the facts as in a record
        kept_facts: dict[str, Any] = record_sanitizer.value({"facts": facts, "t": 0}, DEPTH + 1)["facts"]
        self._note({**sanitizer.faults, **record_sanitizer.faults})
        return kept_facts

    def event(self, event: Mapping[str, str], extra: Mapping[str, Any]) -> dict[str, Any]:
        """Return an event's fields, and additional values that do not replace them."""
        row = {**event, **self.row(extra), **event}
        row.pop("t", None)  # reserved for the time
        record_sanitizer = Sanitizer()
        fields: dict[str, Any] = record_sanitizer.value({"t": 0, **row}, DEPTH + 1)  # as in a record
        self._note(record_sanitizer.faults)
        del fields["t"]
        return fields

    def text(self, value: object) -> str:
        """Convert anything to a string."""
        sanitizer = _sanitizer()
        text = _text_of(value, sanitizer)
        self._note(sanitizer.faults)
        return text

    def tags(self, values: Iterable[object]) -> list[str]:
        """Convert the tags of a run; see `distinct_tags`."""
        return distinct_tags(values, self.fault)

    def _simple(self, data: dict[str, Any]) -> dict[str, Any] | None:
        """Return a copy of a row of numbers and short strings with valid names; None for other rows.

        This is the fast path.
        """
        if len(data) > _SIMPLE_NAMES:
            return None
        row = data.copy()  # another thread may change it
        valid_names = self._valid_names
        for name, value in row.items():
            if type(name) is not str:
                return None
            kind = type(value)
            if kind is float or kind is bool or value is None:
                pass
            elif kind is int:
                if not -INT64 <= value < INT64:
                    return None
            elif kind is str:
                if len(value) > _SHORT_TEXT or not value.isascii():
                    return None
            else:
                number = _number(value)
                if number is None:
                    return None
                row[name] = number
            if name not in valid_names:
                if name_fault(name):
                    return None
                if len(valid_names) < _KNOWN_NAMES:
                    valid_names.add(name)
        return row

    def fault(self, text: str, count: int = 1) -> None:
        """Count a fault."""
        if text not in self.faults and len(self.faults) >= _FAULTS:
            text = "other values that cannot be recorded"
        before = self.faults.get(text, 0)
        self.faults[text] = before + count
        if not before:
            self._report(text)

    def _note(self, faults: Mapping[str, int]) -> None:
        for text, count in faults.items():
            self.fault(text, count)


def distinct_tags(values: Iterable[object], fault: Callable[[str], None]) -> list[str]:
    """Return different tags as short texts; a text is split at its commas.

    Args:
        fault: called with what is recorded otherwise than it was given.
    """
    if isinstance(values, str):
        values = [part.strip() for part in values.split(",")]
    tags: dict[str, None] = {}
    for tag in values:
        sanitizer = _sanitizer()
        text = _text_of(tag, sanitizer)[:_TAG_CHARACTERS]
        for kind in sanitizer.faults:
            fault(kind)
        if text and text not in tags:
            if len(tags) == _MAX_TAGS:
                fault(f"more than {_MAX_TAGS} tags")
                break
            tags[text] = None
    return list(tags)


def _text_of(value: object, sanitizer: Sanitizer) -> str:
    converted = sanitizer.value(value, DEPTH - 1)
    text: str = sanitizer.value(converted if isinstance(converted, str) else str(converted))
    return text


def without_secrets(facts: dict[str, Any]) -> dict[str, Any]:
    """Return valid record values with secrets redacted."""
    from runvitals.monitoring.environment import (
        redaction,  # 1 ms that runs without config or events need not pay
    )

    redacted: dict[str, Any] = redaction.entries(facts)
    return redacted


def _number(value: object) -> float | int | None:
    """Return the number in a scalar of NumPy, PyTorch …; None for anything else."""
    try:
        if isinstance(value, float):
            return float(value)
        number = value.item()  # type: ignore[attr-defined]
        if not number and is_masked(value):
            return None
    except Exception:  # noqa: BLE001 - the slow path handles the value, and reports its error
        return None
    kind = type(number)
    return number if kind is float or kind is bool or (kind is int and -INT64 <= number < INT64) else None


def _sanitizer() -> Sanitizer:
    sanitizer = Sanitizer(lambda value: _known_to_json(value, sanitizer))
    return sanitizer


def _known_to_json(value: object, sanitizer: Sanitizer) -> object:
    """Convert a value of a type that JSON does not know."""
    try:
        if isinstance(value, Mapping):
            return dict(entries(value, sanitizer.fault))
        if isinstance(value, (set, frozenset, deque)):
            return list(value)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return f"({len(value)} bytes)"
        if isinstance(value, MutableSequence) and not hasattr(value, "tolist"):  # such as OmegaConf's
            return list(islice(value, _MAX_ENTRIES))
        return as_plain(value)
    except Exception as error:  # noqa: BLE001 - code of the user's types, which may do anything
        return sanitizer.unreadable(value, error)


def _leaves(data: Mapping[Any, Any], sanitizer: Sanitizer) -> Iterable[tuple[str, object]]:
    """Yield the values of a row by dotted name, in order; at most one more than a row may have."""
    names_left = ROW_NAMES + 1
    pending: list[tuple[str, object, tuple[int, ...]]] = [("", data, ())]
    while pending and names_left:
        prefix, value, above = pending.pop()
        if id(value) in above:
            sanitizer.fault("a mapping that contains itself")
            value = "(contains itself)"
        elif len(above) < _NESTED and (type(value) is dict or _is_mapping(value)):
            inner = [
                (f"{prefix}.{name}" if above else name, item, (*above, id(value)))
                for name, item in _named_entries(value, sanitizer)
            ]
            pending.extend(reversed(inner))
            continue
        names_left -= 1
        yield prefix, value


def _named_entries(mapping: Any, sanitizer: Sanitizer) -> list[tuple[str, object]]:
    """Return the entries of a mapping, with names as strings."""
    items = entries(mapping, sanitizer.fault)
    return [(name if type(name) is str else _name(name, sanitizer), value) for name, value in items]


def _name(key: object, sanitizer: Sanitizer) -> str:
    try:
        if isinstance(key, str):
            return str.__str__(key)  # a subclass may override comparison
        return str(next(iter(sanitizer.value({key: None}))))
    except Exception as error:  # noqa: BLE001 - the key's own code
        return sanitizer.unreadable(key, error)


def entries(mapping: Mapping[Any, Any], fault: Callable[[str], None], most: int = _MAX_ENTRIES) -> Entries:
    """Return the first `most` entries of a mapping. Values that cannot be read are replaced by a text."""
    for _ in range(_ATTEMPTS):
        try:
            return list(islice(mapping.items(), most))
        except RuntimeError:  # another thread has changed it
            continue
        except Exception:  # noqa: BLE001 - a custom mapping type: read one by one, some entries may be readable
            break
    try:
        keys = list(islice(mapping, most))
    except Exception as error:  # noqa: BLE001 - as above, and not even the keys are readable
        return [("(unreadable)", _unreadable(mapping, error, fault))]
    return [(key, _item(mapping, key, fault)) for key in keys]


def _item(mapping: Mapping[Any, Any], key: object, fault: Callable[[str], None]) -> object:
    try:
        return mapping[key]
    except Exception as error:  # noqa: BLE001 - as above
        return _unreadable(mapping, error, fault)


def _unreadable(mapping: object, error: Exception, fault: Callable[[str], None]) -> str:
    fault(f"a mapping of type {type_name(mapping)} that raises {type_name(error)}")
    return f"({type_name(mapping)}: {type_name(error)})"


def _is_mapping(value: object) -> bool:
    try:
        return isinstance(value, Mapping)
    except Exception:  # noqa: BLE001 - a `__class__` that raises
        return False
