"""The administrators of the organisation, of whom at least one must stay."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, select

from runvitals.server.database.tables.accounts import user_account


def lock_administrators(connection: Connection) -> list[Any]:
    """The active administrators, locked, so that two who demote each other do not both succeed."""
    active = select(user_account.c.id, user_account.c.billing_role).where(
        user_account.c.org_role == "admin", user_account.c.state == "active"
    )
    return list(connection.execute(active.order_by(user_account.c.id).with_for_update()))
