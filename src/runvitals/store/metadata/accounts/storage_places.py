"""Which runs a team or user stores, and where."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, or_, select

from runvitals.store.metadata.database import Database
from runvitals.store.metadata.tables import console_kept, project, run


@dataclass(frozen=True, slots=True)
class StoragePlace:
    """A run of a project. `console_bytes`: of its output. `in_trash`: the run, or the project."""

    project_id: int
    project: str
    run_id: int
    console_bytes: int
    in_trash: bool


def storage_places(database: Database, entity_id: int) -> list[StoragePlace]:
    """All runs of a team or user, by project."""
    statement = (
        select(
            project.c.id.label("project_id"),
            project.c.name.label("project"),
            run.c.id.label("run_id"),
            func.coalesce(console_kept.c.bytes, 0).label("console_bytes"),
            or_(project.c.deleted_ms.is_not(None), run.c.deleted_ms.is_not(None)).label("in_trash"),
        )
        .join(run, run.c.project_id == project.c.id)
        .outerjoin(console_kept, console_kept.c.run_id == run.c.id)
        .where(project.c.entity_id == entity_id)
        .order_by(project.c.name, run.c.id)
    )
    with database.read() as connection:
        return [StoragePlace(**row._asdict()) for row in connection.execute(statement)]
