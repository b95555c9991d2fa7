"""Gives projects, with their runs, to a team or a user's own space."""

from __future__ import annotations

from sqlalchemy import Connection, select, update
from sqlalchemy.exc import IntegrityError

from runvitals.server.database.tables.runs import project, run
from runvitals.server.database.text import MAX_NAME
from runvitals.server.runs.storage.run_places import copy_entities
from runvitals.store.errors import NameTaken


def give_project(connection: Connection, project_id: int, entity_id: int, **changes: str) -> None:
    """Give a project to an entity, with other changes of its columns.

    Raises:
        NameTaken: the entity has a project of the same name, or a run with the run id of one of its runs.
    """
    mine = update(project).where(project.c.id == project_id)
    try:
        with connection.begin_nested():
            connection.execute(mine.values(entity_id=entity_id, **changes))
            copy_entities(connection, run.c.project_id == project_id)
    except IntegrityError:
        raise NameTaken(_clash(connection, project_id, entity_id)) from None


def _clash(connection: Connection, project_id: int, entity_id: int) -> str:
    moved, present = run.alias(), run.alias()
    both = (
        select(moved.c.uid)
        .join(present, present.c.uid == moved.c.uid)
        .where(moved.c.project_id == project_id, present.c.entity_id == entity_id, present.c.id != moved.c.id)
    )
    uid = connection.execute(both.order_by(moved.c.uid).limit(1)).scalar()
    if uid is not None:
        return f"the new owner already has a run {uid!r}"
    name = connection.execute(select(project.c.name).where(project.c.id == project_id)).scalar_one()
    return f"the new owner already has a project {name!r}"


def adopt_projects(connection: Connection, team_id: int) -> int:
    """Give a team the projects that have no owner; returns how many.

    Raises:
        NameTaken: the team has a run with the run id of one of their runs.
    """
    names = set(connection.execute(select(project.c.name).where(project.c.entity_id == team_id)).scalars())
    unowned = connection.execute(
        select(project.c.id, project.c.name).where(project.c.entity_id.is_(None)).order_by(project.c.id)
    ).all()
    for project_id, name in unowned:
        free_name = _free_name(_address_name(name), names)
        names.add(free_name)
        give_project(connection, project_id, team_id, visibility="team", name=free_name)
    return len(unowned)


def _address_name(name: str) -> str:
    """A name that can be part of an address."""
    return "".join("-" if character in "/\\" or character < " " else character for character in name)


def _free_name(name: str, names: set[str]) -> str:
    free, number = name, 1
    while free in names:
        number += 1
        ending = f"-{number}"
        free = name[: MAX_NAME - len(ending)] + ending
    return free
