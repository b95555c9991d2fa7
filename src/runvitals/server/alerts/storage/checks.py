"""Checks of a change of what teams have under a name: the team is there, the name free, there is room."""

from __future__ import annotations

from sqlalchemy import Column, ColumnElement, Connection, Table, select

from runvitals.server.database.limits import check_room
from runvitals.server.database.tables.accounts import entity
from runvitals.store.errors import NameTaken, NotFound


def locked_team(connection: Connection, team_id: int) -> tuple[int, str]:
    """Lock a team against other changes of its integrations; returns its id and name.

    So names stay unique, counts right, and no secret is deleted while a webhook gets it.

    Raises:
        NotFound: the team was deleted meanwhile.
    """
    mine = select(entity.c.id, entity.c.name).where(entity.c.id == team_id, entity.c.deleted_ms.is_(None))
    row = connection.execute(mine.with_for_update()).first()
    if row is None:
        raise NotFound(f"there is no team with id {team_id}")
    return row.id, row.name


def check_free(
    connection: Connection,
    name: Column[str],
    team_id: int,
    text: str,
    kind: str,
    *conditions: ColumnElement[bool],
) -> None:
    """Raise NameTaken if a row that meets the conditions has the name; `kind` is for the error."""
    mine = select(name).where(name == text, name.table.c.team_id == team_id, *conditions)
    if connection.execute(mine).first() is not None:
        article = "an" if kind[0] in "aeioAEIO" else "a"
        raise NameTaken(f"the team already has {article} {kind} {text!r}")


def check_count(
    connection: Connection,
    table: Table,
    team_id: int,
    most: int,
    kinds: str,
    *conditions: ColumnElement[bool],
) -> None:
    """Raise LimitReached if a team has as many as a team may have."""
    refusal = f"the team has {most} {kinds}, which is the most that a team may have"
    check_room(connection, table, most, refusal, table.c.team_id == team_id, *conditions, owner_id=team_id)
