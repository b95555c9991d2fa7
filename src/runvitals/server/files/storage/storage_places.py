"""Which runs and files a team or user stores, and where."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import ColumnElement, Integer, Select, Subquery, case, cast, func, or_, select, union

from runvitals.server.database.database import Database
from runvitals.server.database.tables.artifacts import artifact_content
from runvitals.server.database.tables.registry import mlflow_file
from runvitals.server.database.tables.runs import console_kept, project, run, run_file, stored_file

_MEDIA: Final = ("image", "audio", "video", "model")


@dataclass(frozen=True, slots=True)
class StoragePlace:
    """A run of a project; without a run a project that has none.

    Args:
        console_bytes: of its output.
        read_day: see `ReadDays`.
        trashed_ms: since when the run, or the project, is in the trash.
        project_trashed_ms: since when the project is there.
    """

    project_id: int
    project: str
    run_id: int | None
    started_ms: int | None
    last_ms: int | None
    read_day: int | None
    console_bytes: int
    trashed_ms: int | None
    project_trashed_ms: int | None


@dataclass(frozen=True, slots=True)
class FileStorage:
    """Bytes of the files of a project or run.

    Args:
        media: images, audio, video and 3D objects, by their media types; `files`: all others.
        artifacts: what no run has sent as its own file.
        trash: of all three, what only runs in the trash have.
    """

    files: int = 0
    media: int = 0
    artifacts: int = 0
    trash: int = 0


@dataclass(frozen=True, slots=True)
class StoredRunPlace:
    """A run of a project, with what it stores besides samples and artifacts."""

    run_id: int
    uid: str
    name: str
    started_ms: int
    last_ms: int
    read_day: int | None
    author_id: int | None
    service_account_id: int | None
    trashed_ms: int | None
    console_bytes: int
    files: int
    media: int

    @property
    def in_trash(self) -> bool:
        """Whether it, or its project, is in the trash."""
        return self.trashed_ms is not None


def _in_trash() -> ColumnElement[bool]:
    return or_(project.c.deleted_ms.is_not(None), run.c.deleted_ms.is_not(None))


def file_storage(database: Database, entity_id: int | None) -> dict[int, FileStorage]:
    """Return the bytes and number of media, files and artifacts of a team or user, by project id.

    Each content counts once, however many runs have it: in the project of the first of them. One that only
    artifacts have counts in the first of their projects.
    """
    contents = _first_runs(entity_id)
    statement = (
        select(
            run.c.project_id,
            *_sizes(),
            func.sum(stored_file.c.bytes * contents.c.trashed),
        )
        .join(contents, contents.c.run_id == run.c.id)
        .join(stored_file, stored_file.c.id == contents.c.file_id)
        .group_by(run.c.project_id)
    )
    sizes: dict[int, FileStorage] = {}
    with database.read() as connection:
        for project_id, files, media, trash in connection.execute(statement):
            sizes[project_id] = FileStorage(int(files), int(media), 0, int(trash))
        for project_id, size, trash in connection.execute(_artifact_storage(entity_id, contents.c.file_id)):
            before = sizes.get(project_id, FileStorage())
            sizes[project_id] = replace(before, artifacts=int(size), trash=before.trash + int(trash))
    return sizes


def run_storage(database: Database, entity_id: int | None, project_id: int) -> list[StoredRunPlace]:
    """The runs of a project, with what each stores. A content counts in the first run that has it."""
    contents = _first_runs(entity_id)
    sizes = (
        select(contents.c.run_id, *_sizes())
        .join(stored_file, stored_file.c.id == contents.c.file_id)
        .group_by(contents.c.run_id)
        .subquery()
    )
    statement = (
        select(
            run.c.id.label("run_id"),
            run.c.uid,
            run.c.name,
            run.c.started_ms,
            run.c.last_ms,
            run.c.read_day,
            run.c.author_id,
            run.c.service_account_id,
            func.coalesce(project.c.deleted_ms, run.c.deleted_ms).label("trashed_ms"),
            func.coalesce(console_kept.c.bytes, 0).label("console_bytes"),
            func.coalesce(sizes.c.files, 0).label("files"),
            func.coalesce(sizes.c.media, 0).label("media"),
        )
        .join(project, project.c.id == run.c.project_id)
        .outerjoin(console_kept, console_kept.c.run_id == run.c.id)
        .outerjoin(sizes, sizes.c.run_id == run.c.id)
        .where(run.c.project_id == project_id)
        .order_by(run.c.id)
    )
    with database.read() as connection:
        return [StoredRunPlace(**row._asdict()) for row in connection.execute(statement)]


def _first_runs(entity_id: int | None) -> Subquery:
    """Each content that runs of a team or user have, with the first of them.

    `trashed`: 1 if all of them are in the trash.
    """
    return (
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


def _sizes() -> list[ColumnElement[int]]:
    """Bytes of files, and of media."""
    is_media = or_(*(stored_file.c.media_type.like(f"{kind}/%") for kind in _MEDIA))
    size = stored_file.c.bytes
    return [
        func.sum(case((is_media, 0), else_=size)).label("files"),
        func.sum(case((is_media, size), else_=0)).label("media"),
    ]


def _artifact_storage(entity_id: int | None, of_runs: ColumnElement[int]) -> Select[Any]:
    """Bytes of what only artifacts and models of MLflow have, and of that in the trash, by project id."""
    contents = union(
        select(artifact_content.c.file_id, artifact_content.c.project_id),
        select(mlflow_file.c.file_id, mlflow_file.c.project_id),
    ).subquery()
    first = (
        select(
            contents.c.file_id,
            func.min(project.c.id).label("project_id"),
            func.min(cast(project.c.deleted_ms.is_not(None), Integer)).label("trashed"),
        )
        .join(project, project.c.id == contents.c.project_id)
        .where(project.c.entity_id == entity_id, contents.c.file_id.not_in(select(of_runs)))
        .group_by(contents.c.file_id)
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
    """All projects of a team or user, with their runs."""
    statement = (
        select(
            project.c.id.label("project_id"),
            project.c.name.label("project"),
            run.c.id.label("run_id"),
            run.c.started_ms,
            run.c.last_ms,
            run.c.read_day,
            func.coalesce(console_kept.c.bytes, 0).label("console_bytes"),
            func.coalesce(project.c.deleted_ms, run.c.deleted_ms).label("trashed_ms"),
            project.c.deleted_ms.label("project_trashed_ms"),
        )
        .outerjoin(run, run.c.project_id == project.c.id)
        .outerjoin(console_kept, console_kept.c.run_id == run.c.id)
        .where(project.c.entity_id == entity_id)
        .order_by(project.c.name, run.c.id)
    )
    with database.read() as connection:
        return [StoragePlace(**row._asdict()) for row in connection.execute(statement)]
