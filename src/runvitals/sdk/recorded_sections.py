"""Records the entries of `config` and `summary`, also nested ones that change without notice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runvitals.sdk.logged_values import Values, without_secrets

_SIMPLE = frozenset((str, int, float, bool, type(None)))
EntryWriter = Callable[[Mapping[Any, Any], Sequence[Any]], None]
"""Called with the entries that were set and the names that were removed."""


class RecordedSections:
    """Writes INFO records of sections.

    Args:
        values: makes the entries valid.
        accepts: whether changes of a section are recorded.
        write: called with the fields of a record.
    """

    __slots__ = ("_accepts", "_inner", "_values", "_write")

    def __init__(
        self,
        values: Values,
        accepts: Callable[[str], bool],
        write: Callable[[dict[str, Any]], None],
    ) -> None:
        self._values = values
        self._accepts = accepts
        self._write = write
        self._inner: dict[tuple[str, str], Any] = {}  # nested values, as last written

    def writer_of(self, section: str) -> EntryWriter:
        """Return a function that records the changes of a section."""
        return lambda changes, removed: self._write_entries(section, changes, removed)

    def _write_entries(self, section: str, changes: Mapping[Any, Any], removed: Sequence[Any]) -> None:
        if not self._accepts(section):
            return
        record: dict[str, Any] = {}
        if removed:
            record["removed"] = {section: list(self._values.facts(dict.fromkeys(removed)))}
        if changes:
            facts = self._values.facts(changes)
            self._inner.update(
                ((section, name), value) for name, value in facts.items() if type(value) in (dict, list)
            )
            record[section] = without_secrets(facts)
        self._write(record)

    def write_inner_changes(self, sections: Mapping[str, Mapping[str, Any]]) -> None:
        """Record nested values that changed after they were set.

        `config["net"]["lr"] = 1` does not call our `__setitem__`.
        """
        for section, fields in sections.items():
            entries = list(fields.items())  # a copy: another thread may change them
            inner = {name: value for name, value in entries if type(value) not in _SIMPLE}
            facts = Values(_ignore).facts(inner)
            changed = {
                name: value
                for name, value in facts.items()
                if self._inner.get((section, name), value) != value
            }
            if changed:
                self._write({section: without_secrets(changed)})


def _ignore(fault: str) -> None:
    """Ignore faults of nested values, which were reported when the entry was set."""
