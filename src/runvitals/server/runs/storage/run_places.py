"""Where a run is and whose it is: what a decision about rights needs to know of it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, and_, or_, select, update

from runvitals.model.names import plain_text
from runvitals.server.database.tables.accounts import api_key, entity
from runvitals.server.database.tables.runs import project, run, writer


@dataclass(frozen=True, slots=True)
class RunPlace:
    """The project, entity and owner of a run.

    Args:
        entity_id, entity: the team or user that has the project, and its name; None in a store without
            accounts.
        author_id: the user whose run it is; None if there is none.
        service_account_id: the service account that sent it; None if a user's key did.
        deleted: it is in the trash.
        project: name of its project.
    """

    run_id: int
    uid: str
    project_id: int
    entity_id: int | None
    entity: str | None
    author_id: int | None
    service_account_id: int | None
    deleted: bool
    project: str


def read_places(connection: Connection, condition: ColumnElement[bool]) -> list[RunPlace]:
    """Return the places of the runs that meet a condition, by id."""
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
            project.c.name,
        )
        .join(project, project.c.id == run.c.project_id)
        .outerjoin(entity, entity.c.id == project.c.entity_id)
        .where(condition)
        .order_by(run.c.id)
    )
    return [RunPlace(*row) for row in connection.execute(statement)]


def find_sent(
    connection: Connection, uid: str, user_id: int | None, service_account_id: int | None
) -> set[int]:
    """Return the ids of the runs of this name that a user or service account has sent to, by any key."""
    if user_id is not None:
        keys = select(api_key.c.id).where(api_key.c.user_id == user_id)
        own = and_(run.c.author_id == user_id, run.c.service_account_id.is_(None))
    else:
        keys = select(api_key.c.id).where(api_key.c.service_account_id == service_account_id)
        own = run.c.service_account_id == service_account_id
    by_key = select(writer.c.id).where(writer.c.run_id == run.c.id, writer.c.api_key_id.in_(keys))
    statement = select(run.c.id).where(run.c.uid == plain_text(uid), or_(own, by_key.correlate(run).exists()))
    return set(connection.execute(statement).scalars())


def copy_entities(connection: Connection, *conditions: ColumnElement[bool]) -> None:
    """Give the runs that meet the conditions the entity of their project, after it changed."""
    of_project = select(project.c.entity_id).where(project.c.id == run.c.project_id).scalar_subquery()
    connection.execute(update(run).where(*conditions).values(entity_id=of_project))
