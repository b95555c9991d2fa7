"""The rule that a team with members has an administrator."""

from __future__ import annotations

from sqlalchemy import Connection, select

from runvitals.store.errors import LastAdministrator
from runvitals.store.metadata.accounts.entities import name_of
from runvitals.store.metadata.accounts.tables import membership


def check_team_administrators(connection: Connection, team_id: int, without: int | None = None) -> None:
    """Check that a team has an administrator, or no member, in this transaction.

    Locks the memberships, so that two administrators who demote each other do not both succeed.

    Args:
        without: a user who is about to leave.

    Raises:
        LastAdministrator: only members who are no administrators would be left.
    """
    statement = (
        select(membership.c.user_id, membership.c.role)
        .where(membership.c.team_id == team_id)
        .order_by(membership.c.id)
        .with_for_update()
    )
    rows = connection.execute(statement)
    roles = [row.role for row in rows if row.user_id != without]
    if roles and "admin" not in roles:
        name = name_of(connection, team_id)[1]
        raise LastAdministrator(f"the team {name} needs an administrator; make another member one first")
