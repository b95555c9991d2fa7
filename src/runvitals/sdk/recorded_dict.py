"""`run.config` and `run.summary`: dictionaries that record their changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from runvitals.sdk.logged_values import entries

_ABSENT: Any = object()
Write = Callable[[Mapping[Any, Any], Sequence[Any]], None]


class RecordedDict(dict[Any, Any]):
    """A dictionary with attribute access whose changes are written to the journal.

    Changes inside a nested mapping or list are written when the run finishes, or when the entry is assigned
    again.

    Args:
        write: called with the entries that were set and the names that were removed.
        fault: called with a description of a mapping that cannot be read.

    Example:
        >>> run.config["lr"] = 0.1
        >>> run.config.lr
        0.1
    """

    def __init__(self, write: Write, fault: Callable[[str], None]) -> None:
        super().__init__()
        self.__dict__["_write"] = write
        self.__dict__["_fault"] = fault

    def __setitem__(self, name: Any, value: Any) -> None:
        self.update({name: value})

    def __delitem__(self, name: Any) -> None:
        super().__delitem__(name)
        self._write({}, [name])

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(
                f"no entry {name!r}; existing entries: {', '.join(map(str, self)) or 'none'}"
            ) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        if name not in self:
            raise AttributeError(f"no entry {name!r}")
        del self[name]

    def __ior__(self, other: Any) -> RecordedDict:  # type: ignore[misc]
        self.update(other)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Return a plain dictionary for copies and pickles, which record nothing."""
        return dict, (dict(self),)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Set several entries in one record.

        W&B's `allow_val_change` is accepted after a mapping, by name or by position: entries may always
        change.
        """
        if args:
            kwargs.pop("allow_val_change", None)
            args = (self._entries(args[0]), *(args[1:] if not isinstance(args[-1], bool) else ()))
        changes = dict(*args, **kwargs)
        if changes:
            super().update(changes)
            self._write(changes, ())

    def replace(self, other: Any) -> None:
        """Replace all entries with those of another mapping."""
        if other is not self:
            fresh = dict(self._entries(other))
            for name in [name for name in list(self) if name not in fresh]:
                self.pop(name, None)
            self.update(fresh)

    def _entries(self, other: Any) -> Any:
        if type(other) is dict:
            return other
        return entries(other, self._fault) if isinstance(other, Mapping) else pairs(other)

    def setdefault(self, name: Any, default: Any = None) -> Any:
        """Return an entry; set and record the default if it does not exist."""
        value = self.get(name, _ABSENT)  # another thread may remove it meanwhile
        if value is _ABSENT:
            self[name] = value = default
        return value

    def setdefaults(self, other: Any) -> None:
        """Set the entries that do not exist yet."""
        self.update({name: value for name, value in dict(self._entries(other)).items() if name not in self})

    def as_dict(self) -> dict[Any, Any]:
        """Return a plain dictionary with the entries."""
        return dict(self)

    def pop(self, name: Any, default: Any = _ABSENT) -> Any:
        """Remove an entry, record that, and return its value."""
        value = super().pop(name) if default is _ABSENT else super().pop(name, _ABSENT)
        if value is _ABSENT:
            return default
        self._write({}, [name])
        return value

    def popitem(self) -> tuple[Any, Any]:
        """Remove the last entry, record that, and return its name and value."""
        name, value = super().popitem()
        self._write({}, [name])
        return name, value

    def clear(self) -> None:
        """Remove all entries in one record."""
        names = list(self)
        super().clear()
        if names:
            self._write({}, names)


def pairs(source: object) -> dict[Any, Any]:
    """Return the entries of an iterable of pairs, or an object's attributes as of `argparse.Namespace`.

    Raises:
        TypeError, ValueError: it is neither.
    """
    flags = getattr(source, "flag_values_dict", None)
    if callable(flags):  # absl's FLAGS
        return dict(flags())
    if isinstance(source, Iterable) and not isinstance(source, (str, bytes)):
        return dict(source)
    if not hasattr(source, "__dict__") or callable(source):
        raise TypeError(
            f"expected a mapping, or an object with attributes such as argparse.Namespace,"
            f" not {type(source).__name__}"
        )
    return dict(vars(source))


class Summary(RecordedDict):
    """The summary. Logged metrics update it automatically, except for entries that were set by hand."""

    def __init__(self, write: Write, fault: Callable[[str], None]) -> None:
        by_hand: set[Any] = set()

        def write_by_hand(changes: Mapping[Any, Any], removed: Sequence[Any]) -> None:
            by_hand.difference_update(removed)
            by_hand.update(changes)
            write(changes, removed)

        super().__init__(write_by_hand, fault)
        self.__dict__["_by_hand"] = by_hand

    def update_logged(self, values: Mapping[str, Any]) -> None:
        """Update the entries derived from rows of `log()`, unless set by hand. Records nothing."""
        if self._by_hand:
            values = {name: value for name, value in values.items() if name not in self._by_hand}
        dict.update(self, values)
