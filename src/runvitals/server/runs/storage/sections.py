"""The facts about a run in sections: JSON objects of keys from records; the latest time of a key wins.

This is the journal's rule, and it holds for any order of arrival. Sections that differ between
hosts (`machine`, `sources`) are kept by host.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from runvitals.base.json_codec import dumps, loads
from runvitals.model.names import plain_text, project_name
from runvitals.server.database.database import Database, StoredTable
from runvitals.server.database.section_documents import (
    SectionDocument,
    SectionKey,
    read_documents,
    write_documents,
)
from runvitals.server.database.stored_json import stored_object
from runvitals.server.database.tables.accounts import entity
from runvitals.server.database.tables.runs import project, run, section
from runvitals.server.database.text import check_integers, checked_name
from runvitals.server.runs.storage import search_columns
from runvitals.server.runs.storage.pending_summaries import PendingSummaries
from runvitals.server.runs.storage.run_locks import lock_known_runs

BY_HOST = ("machine", "sources")
"""Sections kept by host."""


@dataclass(frozen=True, slots=True)
class SectionUpdate:
    """Keys of a section, set by one record.

    Args:
        section: run, config, summary, machine, settings, sources, or another.
        values: a JSON object. Any text, NaN and infinities are returned unchanged.
        time_ms: when the record was written, by its writer's clock.
        removed: keys to remove before the values are set.
        host: the host, for sections kept by host.
    """

    run_id: int
    section: str
    values: dict[str, Any]
    time_ms: int
    host: str = ""
    removed: tuple[str, ...] = ()

    @property
    def key(self) -> SectionKey:
        """The section that it changes."""
        return SectionKey(
            self.run_id, self.section, checked_name("host", self.host) if self.section in BY_HOST else ""
        )

    def to_stored_form(self) -> SectionUpdate:
        """Return the update in the form in which it will be read back.

        Raises:
            ValueError: something that cannot be stored; the text says what is allowed.
        """
        if not isinstance(self.values, dict):
            raise ValueError(
                f"invalid section {self.section!r}; expected a JSON object, not {type(self.values).__name__}"
            )
        check_integers(f"section {self.section!r}", time_ms=self.time_ms)
        try:
            values = loads(dumps(self.values))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"section {self.section!r} of run {self.run_id} is not a JSON object: {error}"
            ) from None
        section = checked_name("section", self.section, 64)
        return SectionUpdate(self.run_id, section, values, self.time_ms, self.host, self.removed)


class RunSection(NamedTuple):
    """A section of a run, with the name and number of the team or user that it belongs to, if any."""

    run: str
    entity: str | None
    entity_id: int | None
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RunSections:
    """The sections of a run by name; those in `BY_HOST` by name and host."""

    shared: dict[str, dict[str, Any]] = field(default_factory=dict)
    by_host: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)

    def summary(self) -> dict[str, Any]:
        """Return the summary of the logged rows, overridden by values set explicitly."""
        names = ("summary", search_columns.LOGGED, search_columns.DELETED)
        return search_columns.summary_values(*(self.shared.get(name, {}) for name in names))


class SectionTable(StoredTable):
    """The sections of all runs.

    Example:
        >>> update = SectionUpdate(run_id, "config", {"lr": 0.1, "layers": [64, 64]}, now_ms)
        >>> metadata_store.sections.merge([update])
        >>> metadata_store.sections.read([run_id])[run_id].shared["config"]["lr"]
        0.1
    """

    def __init__(self, database: Database, pending_summaries: PendingSummaries) -> None:
        super().__init__(database)
        self._pending_summaries = pending_summaries

    def merge(self, updates: Sequence[SectionUpdate]) -> None:
        """Merge updates, searchable fields included, all or none, durably; raise ValueError or UnknownRun."""
        checked = [update.to_stored_form() for update in updates]
        for update in checked:
            update.key  # noqa: B018 - checks the host
        if checked:
            self._database.write(lambda connection: merge(connection, checked))

    def read(self, run_ids: Iterable[int], names: Sequence[str] | None = None) -> dict[int, RunSections]:
        """Return the sections of runs, all or only some names.

        The result of a run without sections is empty.
        """
        sections = {run_id: RunSections() for run_id in run_ids}
        if names is None or search_columns.LOGGED in names:
            self._pending_summaries.flush_for_readers(sections)
        with self._database.read() as connection:
            plain = None if names is None else [plain_text(name) for name in names]
            documents = read_documents(connection, sections, plain)
        for key, document in documents.items():
            if key.section in BY_HOST:
                sections[key.run_id].by_host.setdefault(key.section, {})[key.host] = document.values
            else:
                sections[key.run_id].shared[key.section] = document.values
        return sections

    def of_all_runs(self, name: str) -> list[RunSection]:
        """Return a section of all runs that have it, which must be few: the table is read as a whole."""
        statement = (
            select(section.c.run_id, section.c.body, run.c.uid, project.c.entity_id, entity.c.name)
            .join(run, run.c.id == section.c.run_id)
            .join(project, project.c.id == run.c.project_id)
            .outerjoin(entity, entity.c.id == project.c.entity_id)
            .where(section.c.name == name)
        )
        with self._database.read() as connection:
            return [
                RunSection(
                    row.uid,
                    row.name,
                    row.entity_id,
                    stored_object(row.body, f"the section {name} of run {row.run_id}"),
                )
                for row in connection.execute(statement)
            ]


def merge(connection: Connection, updates: Sequence[SectionUpdate]) -> bool:
    """Implements `SectionTable.merge` within a transaction, for checked updates.

    Returns:
        whether something was not superseded by what is there.
    """
    # Projects before runs, as when writers are registered: otherwise two transactions could deadlock.
    projects = search_columns.ensure_named_projects(connection, updates)
    runs = lock_known_runs(connection, {update.run_id for update in updates})
    keys = {update.key for update in updates}
    documents = read_documents(connection, runs, {key.section for key in keys}.union(search_columns.SECTIONS))
    before = search_columns.fields_of(documents, keys)
    moved: dict[int, int] = {}
    changed: set[SectionKey] = set()
    for update in updates:
        document = documents.setdefault(update.key, SectionDocument())
        removed = document.remove(update.removed, update.time_ms)
        changed_keys = document.merge(update.values, update.time_ms)
        if changed_keys or removed:
            changed.add(update.key)
        if update.section == "run" and "project" in changed_keys:
            moved[update.run_id] = projects[update.run_id, project_name(update.values["project"])]
    write_documents(connection, {key: documents[key] for key in changed})
    search_columns.write_fields(connection, before, search_columns.fields_of(documents, changed))
    search_columns.write_abouts(
        connection, documents, {key.run_id for key in changed if key.section == "run"}, moved
    )
    search_columns.write_texts(
        connection, documents, {key.run_id for key in changed if key.section in ("run", "config")}
    )
    return bool(changed)
