"""A section of a run: a JSON object with the time at which each key was set."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from runvitals.base.json_codec import dumps, loads
from runvitals.server.database.database import among, put_rows
from runvitals.server.database.stored_json import stored_object
from runvitals.server.database.tables.runs import section


class SectionKey(NamedTuple):
    """Identifies a section: its run, and its host for sections kept by host (else "")."""

    run_id: int
    section: str
    host: str


@dataclass(slots=True)
class SectionDocument:
    """Values and the times in ms at which they were set.

    Most were set at `set_ms`, the latest time; `older` has the times of the others, and of removed keys.
    """

    values: dict[str, Any] = field(default_factory=dict)
    set_ms: int = 0
    older: dict[str, int] = field(default_factory=dict)

    def time_of(self, key: str) -> int:
        """When an existing key was set, or a removed key was removed."""
        return self.older.get(key, self.set_ms)

    def remove(self, keys: Iterable[str], time_ms: int) -> set[str]:
        """Remove keys, except those set later. Values set earlier do not reappear.

        Returns:
            the keys that were removed.
        """
        removed = {key for key in keys if not self._was_set(key) or time_ms >= self.time_of(key)}
        for key in removed:
            self.values.pop(key, None)
            self.older[key] = time_ms
        return removed

    def _was_set(self, key: str) -> bool:
        return key in self.values or key in self.older

    def merge(self, values: Mapping[str, Any], time_ms: int) -> set[str]:
        """Set keys, except those already set later.

        Returns:
            the keys that were set.

        Example:
            >>> document = SectionDocument()
            >>> document.merge({"lr": 0.1, "seed": 1}, 2000) == {"lr", "seed"}
            True
            >>> document.merge({"lr": 0.5, "gpus": 8}, 1000), document.values
            ({'gpus'}, {'lr': 0.1, 'seed': 1, 'gpus': 8})
        """
        changed = {key for key in values if not self._was_set(key) or time_ms >= self.time_of(key)}
        if not changed:
            return changed
        if not self.values:
            self.set_ms = time_ms
        if time_ms > self.set_ms:
            self.older = {key: self.time_of(key) for key in (*self.values, *self.older)}
            self.set_ms = time_ms
        for key in changed:
            if time_ms < self.set_ms:
                self.older[key] = time_ms
            else:
                self.older.pop(key, None)
        self.values.update((key, value) for key, value in values.items() if key in changed)
        return changed


def read_documents(
    connection: Connection, run_ids: Iterable[int], sections: Collection[str] | None = None
) -> dict[SectionKey, SectionDocument]:
    """The sections of runs, all or only some names."""
    statement = select(section).where(among(connection, section.c.run_id, run_ids))
    if sections is not None:
        statement = statement.where(section.c.name.in_(sections))
    return {
        SectionKey(row.run_id, row.name, row.host): SectionDocument(
            stored_object(row.body, f"the section {row.name} of run {row.run_id}"),
            row.set_ms,
            loads(row.older),
        )
        for row in connection.execute(statement)
    }


def write_documents(connection: Connection, documents: Mapping[SectionKey, SectionDocument]) -> None:
    """Store sections in their current form."""
    rows = [
        {
            "run_id": key.run_id,
            "name": key.section,
            "host": key.host,
            "body": dumps(document.values).decode("ascii"),
            "set_ms": document.set_ms,
            "older": dumps(document.older).decode("ascii"),
        }
        for key, document in sorted(documents.items())
    ]
    put_rows(connection, section, rows)
