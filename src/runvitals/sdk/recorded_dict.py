"""`run.config` and `run.summary`: mappings that write their changes down."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from runvitals.sdk.logged_values import entries

_ABSENT: Any = object()
Write = Callable[[Mapping[Any, Any], Sequence[Any]], None]


class Fields(dict[Any, Any]):
    """A dictionary whose entries are attributes too, and whose changes are written to the journal.

    What changes within a mapping or list that lies in an entry is written at the run's end, or when the entry
    is assigned again.

    Args:
        write: called with the entries that are set and the names of those that are removed.
        fault: called with what is wrong with a mapping that cannot be read.

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
                f"there is no {name!r} here; there are {', '.join(map(str, self)) or 'none yet'}"
            ) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        if name not in self:
            raise AttributeError(f"there is no {name!r} here")
        del self[name]

    def __ior__(self, other: Any) -> Fields:  # type: ignore[misc]
        self.update(other)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, here or in another process, is a plain dictionary: it writes nothing."""
        return dict, (dict(self),)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Set several entries, and write them as one record."""
        if len(args) == 1:
            args = (self._entries(args[0]),)
        changes = dict(*args, **kwargs)
        if changes:
            super().update(changes)
            self._write(changes, ())

    def replace(self, other: Any) -> None:
        """Have the entries of another mapping, and no others."""
        if other is not self:
            fresh = dict(self._entries(other))
            for name in [name for name in self if name not in fresh]:
                del self[name]
            self.update(fresh)

    def _entries(self, given: Any) -> Any:
        if type(given) is dict:
            return given
        return entries(given, self._fault) if isinstance(given, Mapping) else pairs(given)

    def setdefault(self, name: Any, default: Any = None) -> Any:
        if name not in self:
            self[name] = default
        return self[name]

    def pop(self, name: Any, default: Any = _ABSENT) -> Any:
        if name not in self and default is not _ABSENT:
            return default
        value = self[name]
        del self[name]
        return value

    def popitem(self) -> tuple[Any, Any]:
        name, value = super().popitem()
        self._write({}, [name])
        return name, value

    def clear(self) -> None:
        names = list(self)
        super().clear()
        if names:
            self._write({}, names)


def pairs(given: object) -> dict[Any, Any]:
    """The entries that something else than a mapping has: pairs, or an object like `argparse.Namespace`.

    Raises:
        TypeError, ValueError: it has none.
    """
    if isinstance(given, Iterable) and not isinstance(given, (str, bytes)):
        return dict(given)
    if not hasattr(given, "__dict__") or callable(given):
        raise TypeError(
            f"a mapping is expected, or an object with attributes such as argparse.Namespace,"
            f" not {type(given).__name__}"
        )
    return dict(vars(given))


class Summary(Fields):
    """The summary: what is logged comes into it by itself, what is set by hand stays."""

    def __init__(self, write: Write, fault: Callable[[str], None]) -> None:
        by_hand: set[Any] = set()

        def noted(changes: Mapping[Any, Any], removed: Sequence[Any]) -> None:
            by_hand.difference_update(removed)
            by_hand.update(changes)
            write(changes, removed)

        super().__init__(noted, fault)
        self.__dict__["_by_hand"] = by_hand

    def note(self, values: Mapping[str, Any]) -> None:
        """Set entries that follow from the rows of `log()`."""
        if self._by_hand:
            values = {name: value for name, value in values.items() if name not in self._by_hand}
        dict.update(self, values)
