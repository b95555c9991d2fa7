"""The rule that a team with members has an administrator."""

from __future__ import annotations

from sqlalchemy import Connection, select

from runvitals.server.accounts.storage.entities import name_of
from runvitals.server.database.tables.accounts import membership
from runvitals.store.errors import LastAdministrator


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
    """The roles of a team's members by user id. Their rows are locked until the transaction ends."""
    statement = select(membership.c.user_id, membership.c.role).where(membership.c.team_id == team_id)
    rows = connection.execute(statement.order_by(membership.c.id).with_for_update())
    return {row.user_id: row.role for row in rows}
