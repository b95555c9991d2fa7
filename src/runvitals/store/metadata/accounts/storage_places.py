"""Which runs and files a team or user stores, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Integer, Select, cast, func, or_, select

from runvitals.store.metadata.artifacts.tables import artifact_content
from runvitals.store.metadata.database import Database
from runvitals.store.metadata.tables import console_kept, project, run, run_file, stored_file


@dataclass(frozen=True, slots=True)
class StoragePlace:
    """A run of a project. `console_bytes`: of its output. `in_trash`: the run, or the project."""

    project_id: int
    project: str
    run_id: int
    console_bytes: int
    in_trash: bool


@dataclass(frozen=True, slots=True)
class FileStorage:
    """Bytes of the files of a project. `trash`: those of files that only runs in the trash have."""

    bytes: int
    trash: int


def _in_trash() -> ColumnElement[bool]:
    return or_(project.c.deleted_ms.is_not(None), run.c.deleted_ms.is_not(None))


def file_storage(database: Database, entity_id: int | None) -> dict[int, FileStorage]:
    """What the media, files and artifacts of a team or user take, by project id.

    Each content counts once, however many runs have it: in the project of the first of them. One that only
    artifacts have counts in the first of their projects.
    """
    contents = (
        select(
            run_file.c.file_id,
            func.min(run.c.id).label("run_id"),
            func.min(cast(_in_trash(), Integer)).label("trashed"),
        )
        .join(run, run.c.id == run_file.c.run_id)
        .join(project, project.c.id == run.c.project_id)
        .where(project.c.entity_id == entity_id)
        .group_by(run_file.c.file_id)
        .subquery()
    )
    statement = (
        select(
            run.c.project_id,
            func.sum(stored_file.c.bytes),
            func.sum(stored_file.c.bytes * contents.c.trashed),
        )
        .join(contents, contents.c.run_id == run.c.id)
        .join(stored_file, stored_file.c.id == contents.c.file_id)
        .group_by(run.c.project_id)
    )
    with database.read() as connection:
        rows = list(connection.execute(statement))
        rows += connection.execute(_artifact_storage(entity_id, contents.c.file_id)).all()
    found: dict[int, FileStorage] = {}
    for project_id, size, trash in rows:
        before = found.get(project_id, FileStorage(0, 0))
        found[project_id] = FileStorage(before.bytes + int(size), before.trash + int(trash))
    return found


def _artifact_storage(entity_id: int | None, of_runs: ColumnElement[int]) -> Select[Any]:
    """Bytes of what only artifacts have, and of what is in the trash of it, by project id."""
    first = (
        select(
            artifact_content.c.file_id,
            func.min(project.c.id).label("project_id"),
            func.min(cast(project.c.deleted_ms.is_not(None), Integer)).label("trashed"),
        )
        .join(project, project.c.id == artifact_content.c.project_id)
        .where(project.c.entity_id == entity_id, artifact_content.c.file_id.not_in(select(of_runs)))
        .group_by(artifact_content.c.file_id)
        .subquery()
    )
    return (
        select(
            first.c.project_id,
            func.sum(stored_file.c.bytes),
            func.sum(stored_file.c.bytes * first.c.trashed),
        )
        .join(stored_file, stored_file.c.id == first.c.file_id)
        .group_by(first.c.project_id)
    )


def storage_places(database: Database, entity_id: int | None) -> list[StoragePlace]:
    """All runs of a team or user, by project."""
    statement = (
        select(
            project.c.id.label("project_id"),
            project.c.name.label("project"),
            run.c.id.label("run_id"),
            func.coalesce(console_kept.c.bytes, 0).label("console_bytes"),
            _in_trash().label("in_trash"),
        )
        .join(run, run.c.project_id == project.c.id)
        .outerjoin(console_kept, console_kept.c.run_id == run.c.id)
        .where(project.c.entity_id == entity_id)
        .order_by(project.c.name, run.c.id)
    )
    with database.read() as connection:
        return [StoragePlace(**row._asdict()) for row in connection.execute(statement)]
