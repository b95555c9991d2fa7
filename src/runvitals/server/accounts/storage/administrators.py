"""Administrators of the organisation and of teams: each keeps at least one."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, delete, insert, select

from runvitals.server.accounts.storage.entities import name_of
from runvitals.server.database.limits import take_turns
from runvitals.server.database.tables.accounts import membership, user_account
from runvitals.server.database.tables.sign_on import group_administrator
from runvitals.store.errors import LastAdministrator


def lock_administrators(connection: Connection) -> list[Any]:
    """Return the active administrators, locked, so that two who demote each other do not both succeed."""
    active = select(user_account.c.id, user_account.c.billing_role).where(
        user_account.c.org_role == "admin", user_account.c.state == "active"
    )
    return list(connection.execute(active.order_by(user_account.c.id).with_for_update()))


def note_group_administrator(connection: Connection, user_id: int, provider: str | None) -> None:
    """Note which provider's group made a user an administrator; None: none did, or they no longer are one."""
    take_turns(connection, "group_administrator", user_id)
    connection.execute(delete(group_administrator).where(group_administrator.c.user_id == user_id))
    if provider is not None:
        connection.execute(insert(group_administrator).values(user_id=user_id, provider=provider))


def administrator_by(connection: Connection, user_id: int) -> str | None:
    """Return the provider whose group made a user an administrator; None: no group did."""
    mine = select(group_administrator.c.provider).where(group_administrator.c.user_id == user_id)
    return connection.execute(mine).scalar()


def check_team_administrators(
    connection: Connection, team_id: int, user_id: int, *, stays: bool = False
) -> None:
    """Check, in the transaction of the change, that a user may stop being an administrator of a team.

    Locks the memberships, so that two administrators who demote each other do not both succeed. Call it
    before the change: a transaction that changed one of the rows first could wait for another for ever.

    Args:
        stays: whether the user stays in the team, with a lower role.

    Raises:
        LastAdministrator: only members who are no administrators would be left.
    """
    roles = lock_members(connection, team_id)
    if roles.pop(user_id, None) != "admin" or "admin" in roles.values():
        return
    if roles or stays:
        name = name_of(connection, team_id)[1]
        raise LastAdministrator(f"the team {name} needs an administrator; make another member one first")


def lock_members(connection: Connection, team_id: int) -> dict[int, str]:
    """Return the roles of a team's members by user id. Their rows are locked until the transaction ends."""
    statement = select(membership.c.user_id, membership.c.role).where(membership.c.team_id == team_id)
    rows = connection.execute(statement.order_by(membership.c.id).with_for_update())
    return {row.user_id: row.role for row in rows}
