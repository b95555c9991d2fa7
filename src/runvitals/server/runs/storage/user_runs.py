"""The runs of one user, wherever they are: for a copy of the user's data, and before the account goes."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, func, select

from runvitals.server.database.database import Database
from runvitals.server.database.tables.accounts import api_key, entity, membership, user_account
from runvitals.server.database.tables.runs import project, run


@dataclass(frozen=True, slots=True)
class UserRun:
    """A run of a user. `entity`: whose it is now; `deleted_ms`: since when it is in the trash."""

    entity: str
    project: str
    run: str
    name: str
    started_ms: int
    deleted_ms: int | None


@dataclass(frozen=True, slots=True)
class AccountContents:
    """Runs of a user that go with the account, and those that stay.

    Attributes:
        projects, runs: in the user's own space; they go.
        keys: that go.
        team_runs: of the user in teams; they stay.
        teams: that only this user is in; they go to the trash.
    """

    projects: int
    runs: int
    keys: int
    team_runs: int
    teams: list[str]


def runs_of_user(database: Database, user_id: int, limit: int) -> list[UserRun]:
    """Return the newest runs of a user."""
    statement = (
        select(
            entity.c.name.label("entity"),
            project.c.name.label("project"),
            run.c.uid.label("run"),
            run.c.name,
            run.c.started_ms,
            run.c.deleted_ms,
        )
        .join(project, project.c.id == run.c.project_id)
        .join(entity, entity.c.id == run.c.entity_id)
        .where(run.c.author_id == user_id)
        .order_by(run.c.started_ms.desc(), run.c.id.desc())
    )
    with database.read() as connection:
        return [UserRun(**row._asdict()) for row in connection.execute(statement.limit(limit))]


def account_contents(database: Database, user_id: int) -> AccountContents:
    """Return what a deletion of an account would remove."""
    own = select(user_account.c.entity_id).where(user_account.c.id == user_id).scalar_subquery()
    with database.read() as connection:

        def count(*conditions: ColumnElement[bool]) -> int:
            return int(connection.execute(select(func.count()).where(*conditions)).scalar_one())

        others = membership.alias()
        shared = (
            select(others.c.id)
            .where(others.c.team_id == membership.c.team_id, others.c.user_id != user_id)
            .exists()
        )
        alone = (
            select(entity.c.name)
            .join(membership, membership.c.team_id == entity.c.id)
            .where(membership.c.user_id == user_id, ~shared, entity.c.deleted_ms.is_(None))
        )
        return AccountContents(
            projects=count(project.c.entity_id == own),
            runs=count(run.c.entity_id == own),
            keys=count(api_key.c.user_id == user_id, api_key.c.revoked_ms.is_(None)),
            team_runs=count(run.c.author_id == user_id, run.c.entity_id != own),
            teams=list(connection.execute(alone.order_by(entity.c.name)).scalars()),
        )
