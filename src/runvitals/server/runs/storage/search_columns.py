"""Derives from a run's sections the columns, tags, fields and text by which it is found and sorted.

Everything here can be recomputed from the sections, and is never displayed instead of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from sqlalchemy import Connection, bindparam, delete, select

from runvitals.model import fields
from runvitals.model.fields import Scalar
from runvitals.model.names import project_name, shorten
from runvitals.model.search_text import MAX_NOTES, search_text, tags_of
from runvitals.server.database.database import add_rows, among, ensure_ids, put_rows, update_rows
from runvitals.server.database.section_documents import SectionDocument, SectionKey
from runvitals.server.database.tables.runs import field, run, run_field, run_note, run_tag, run_text
from runvitals.server.database.text import MAX_NAME
from runvitals.server.events.automation_events import raise_tags
from runvitals.server.projects.storage.projects import ProjectOwner, ensure_projects

LOGGED = "logged"
"""The section of the values computed from rows of `log()`; see `summaries`."""
DELETED = "deleted_summary"
"""The section with the names of logged values that a client has deleted from its summary."""
SECTIONS = ("run", "config", "summary", LOGGED, DELETED)
"""The sections from which something is derived."""
_SUMMARY = "summary"
_OF_SUMMARY = (LOGGED, DELETED)

FieldsOfRuns = Mapping[int, Mapping[str, Scalar]]
Documents = Mapping[SectionKey, SectionDocument]


class SectionChange(Protocol):
    """An update of a section."""

    @property
    def run_id(self) -> int:
        """The number of the run."""

    @property
    def section(self) -> str:
        """The name of the section."""

    @property
    def values(self) -> dict[str, Any]:
        """The keys that it sets."""

    @property
    def time_ms(self) -> int:
        """When it was made, ms UTC."""


def ensure_named_projects(
    connection: Connection, updates: Iterable[SectionChange]
) -> dict[tuple[int, str], int]:
    """Return the ids of the projects that updates name, by run and name; missing projects are created.

    A name is that of a project of the run's own entity.
    """
    project_times = {
        (update.run_id, project_name(update.values["project"])): update.time_ms
        for update in updates
        if update.section == "run" and "project" in update.values
    }
    if not project_times:
        return {}
    of_runs = among(connection, run.c.id, {run_id for run_id, _ in project_times})
    statement = select(run.c.id, run.c.entity_id, run.c.author_id).where(of_runs)
    owners = {row.id: ProjectOwner(row.entity_id, row.author_id) for row in connection.execute(statement)}
    keys = [(name, owners[run_id]) for run_id, name in project_times if run_id in owners]
    ids = ensure_projects(connection, keys, max(project_times.values()))
    return {
        (run_id, name): ids[owners[run_id].entity_id, name]
        for run_id, name in project_times
        if run_id in owners
    }


def fields_of(documents: Documents, keys: Iterable[SectionKey]) -> dict[int, dict[str, Scalar]]:
    """Return the leaves of those sections that have fields, by run."""
    by_run: dict[int, dict[str, Scalar]] = {}
    for key in {key._replace(section=_SUMMARY) if key.section in _OF_SUMMARY else key for key in keys}:
        if key.section in fields.SECTIONS:
            of_run = by_run.setdefault(key.run_id, {})
            of_run.update(fields.leaves(key.section, _values(documents, key)))
    return by_run


def _values(documents: Documents, key: SectionKey) -> dict[str, Any]:
    """Return the values of a section; those of the summary as `summary_values` does."""
    values = documents[key].values if key in documents else {}
    if key.section != _SUMMARY:
        return values
    logged, deleted = (documents.get(key._replace(section=name)) for name in _OF_SUMMARY)
    return summary_values(values, logged.values if logged else {}, deleted.values if deleted else {})


def summary_values(
    values: Mapping[str, Any], logged: Mapping[str, Any], deleted: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the summary: logged values that were not deleted, overridden by those set explicitly."""
    if deleted:
        logged = {name: value for name, value in logged.items() if name not in deleted}
    return {**logged, **values}


def write_fields(connection: Connection, before: FieldsOfRuns, after: FieldsOfRuns) -> None:
    """Update the fields of runs from their previous to their new state."""
    numbers = ensure_ids(
        connection, field.c.name, {name for leaves in (*before.values(), *after.values()) for name in leaves}
    )
    removed: list[dict[str, Any]] = []
    new: list[dict[str, Any]] = []
    for run_id, leaves in after.items():
        fields = before.get(run_id, {})
        removed += [{"of_run": run_id, "of_field": numbers[name]} for name in fields.keys() - leaves.keys()]
        new += [
            {
                "run_id": run_id,
                "field_id": numbers[name],
                "kind": leaf.kind,
                "number": leaf.number,
                "text": leaf.text,
            }
            for name, leaf in leaves.items()
            if fields.get(name) != leaf
        ]
    if removed:
        same_field = (
            run_field.c.run_id == bindparam("of_run"),
            run_field.c.field_id == bindparam("of_field"),
        )
        connection.execute(delete(run_field).where(*same_field), removed)
    put_rows(connection, run_field, new)


def write_abouts(
    connection: Connection, documents: Documents, run_ids: Iterable[int], moved: Mapping[int, int]
) -> None:
    """Update the columns, tags and notes of runs from their `run` sections.

    Args:
        moved: runs whose project was set now, and its id.
    """
    rows: list[dict[str, Any]] = []
    tags: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    for run_id, uid, project_id in connection.execute(
        select(run.c.id, run.c.uid, run.c.project_id).where(among(connection, run.c.id, run_ids))
    ):
        about = documents[SectionKey(run_id, "run", "")].values
        rows.append(
            {
                "which": run_id,
                "project_id": moved.get(run_id, project_id),
                "name": shorten(str(about.get("name") or about.get("default_name") or uid), MAX_NAME),
                "group_name": shorten(str(about.get("group") or ""), MAX_NAME),
                "job_type": shorten(str(about.get("job_type") or ""), MAX_NAME),
            }
        )
        tags += [{"run_id": run_id, "tag": tag} for tag in tags_of(about)]
        if about.get("notes"):
            notes.append({"run_id": run_id, "text": shorten(str(about["notes"]), MAX_NOTES)})
    update_rows(connection, run, rows)
    raise_tags(connection, {row["which"] for row in rows}, tags)
    connection.execute(delete(run_tag).where(among(connection, run_tag.c.run_id, run_ids)))
    add_rows(connection, run_tag, tags)
    connection.execute(delete(run_note).where(among(connection, run_note.c.run_id, run_ids)))
    add_rows(connection, run_note, notes)


def write_texts(connection: Connection, documents: Documents, run_ids: Iterable[int]) -> None:
    """Update the search text of runs from their sections."""
    statement = select(run.c.id, run.c.uid).where(among(connection, run.c.id, run_ids))
    nothing = SectionDocument()
    put_rows(
        connection,
        run_text,
        [
            {
                "run_id": run_id,
                "text": search_text(
                    uid,
                    documents.get(SectionKey(run_id, "run", ""), nothing).values,
                    documents.get(SectionKey(run_id, "config", ""), nothing).values,
                ),
            }
            for run_id, uid in connection.execute(statement)
        ],
    )
