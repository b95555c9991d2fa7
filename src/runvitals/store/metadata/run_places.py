"""Where a run is and whose it is: what a decision about rights needs to know of it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, select, update

from runvitals.store.metadata.accounts.tables import entity
from runvitals.store.metadata.tables import project, run


@dataclass(frozen=True, slots=True)
class RunPlace:
    """The project, entity and owner of a run.

    Args:
        entity_id, entity: the team or user that has the project, and its name; None in a store without
            accounts.
        author_id: the user whose run it is; None if there is none.
        service_account_id: the service account that sent it; None if a user's key did.
        deleted: it is in the trash.
    """

    run_id: int
    uid: str
    project_id: int
    entity_id: int | None
    entity: str | None
    author_id: int | None
    service_account_id: int | None
    deleted: bool


def read_places(connection: Connection, condition: ColumnElement[bool]) -> list[RunPlace]:
    """The places of the runs that meet a condition, by id."""
    statement = (
        select(
            run.c.id,
            run.c.uid,
            run.c.project_id,
            project.c.entity_id,
            entity.c.name,
            run.c.author_id,
            run.c.service_account_id,
            run.c.deleted_ms.is_not(None),
        )
        .join(project, project.c.id == run.c.project_id)
        .outerjoin(entity, entity.c.id == project.c.entity_id)
        .where(condition)
        .order_by(run.c.id)
    )
    return [RunPlace(*row) for row in connection.execute(statement)]


def copy_entities(connection: Connection, *conditions: ColumnElement[bool]) -> None:
    """Give the runs that meet the conditions the entity of their project, after it changed."""
    of_project = select(project.c.entity_id).where(project.c.id == run.c.project_id).scalar_subquery()
    connection.execute(update(run).where(*conditions).values(entity_id=of_project))
