"""Administrators of the organisation whom a provider's group made so. All others were appointed by hand."""

from __future__ import annotations

from sqlalchemy import Connection, delete, insert, select

from runvitals.server.database.tables.sign_on import group_administrator


def note_group_administrator(connection: Connection, user_id: int, provider: str | None) -> None:
    """Note which provider's group made a user an administrator; None: none did, or they no longer are one."""
    connection.execute(delete(group_administrator).where(group_administrator.c.user_id == user_id))
    if provider is not None:
        connection.execute(insert(group_administrator).values(user_id=user_id, provider=provider))


def administrator_by(connection: Connection, user_id: int) -> str | None:
    """The provider whose group made a user an administrator; None: no group did."""
    mine = select(group_administrator.c.provider).where(group_administrator.c.user_id == user_id)
    return connection.execute(mine).scalar()
