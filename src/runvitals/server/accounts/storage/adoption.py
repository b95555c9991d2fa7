"""The adoption by a team of what a server stored before it had accounts."""

from __future__ import annotations

from sqlalchemy import exists, select

from runvitals.server.audit.storage.audit import SYSTEM
from runvitals.server.database.database import Database
from runvitals.server.database.tables.accounts import service_account, user_account
from runvitals.server.database.tables.runs import project, token
from runvitals.server.teams.storage.teams import TeamTable
from runvitals.store.errors import NotFound


def adopt_earlier_projects(database: Database, team: str, now_ms: int) -> bool:
    """Give a team the projects and tokens from before accounts; returns whether there were any.

    The team is created if it does not exist, administered by the first administrator of the organisation.

    Raises:
        NameTaken: a user has this name.
    """
    unowned = exists().where(project.c.entity_id.is_(None))
    valid_tokens = exists().where(token.c.revoked_ms.is_(None))
    legacy = exists().where(service_account.c.kind == "legacy")
    first = (
        select(user_account.c.id)
        .where(user_account.c.org_role == "admin", user_account.c.state == "active")
        .order_by(user_account.c.id)
        .limit(1)
    )
    with database.read() as connection:
        has_earlier = connection.execute(select(unowned | (valid_tokens & ~legacy))).scalar()
        administrator: int | None = connection.execute(first).scalar()
    if not has_earlier:
        return False
    teams = TeamTable(database)
    try:
        owner = teams.by_name(team)
    except NotFound:
        owner = teams.create(team, SYSTEM, now_ms, administrator=administrator)
    teams.adopt(owner.id, SYSTEM, now_ms)
    return True
