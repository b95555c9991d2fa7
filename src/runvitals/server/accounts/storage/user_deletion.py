"""The deletion of accounts, with all that belongs to them alone."""

from __future__ import annotations

from sqlalchemy import Connection, delete, select, update

from runvitals.server.accounts.storage.administrators import lock_members
from runvitals.server.accounts.storage.entities import name_of
from runvitals.server.accounts.storage.pictures import remove_picture
from runvitals.server.audit.storage.audit import Actor, anonymise_user, record
from runvitals.server.database.rights_generation import rights_changed
from runvitals.server.database.tables import accounts as tables
from runvitals.server.database.tables import sign_in as sign_in_tables
from runvitals.server.database.tables import sign_on as sign_on_tables
from runvitals.server.database.tables.accounts import entity, membership, user_account
from runvitals.server.database.tables.runs import project
from runvitals.server.reports.storage.leaving import leave_reports

DELETED_NAME = "deleted user"
_PERSONAL = (
    tables.session,
    tables.password,
    tables.second_factor,
    tables.recovery_code,
    tables.one_time_token,
    tables.device_login,
    tables.email,
    tables.api_key,
    sign_in_tables.passkey,
    sign_in_tables.passkey_owner,
    sign_on_tables.login,
    sign_on_tables.login_offer,
    sign_on_tables.sign_in_attempt,
    sign_on_tables.group_administrator,
    tables.membership,
    tables.project_member,
    tables.team_join_request,
)


def remove_user(
    connection: Connection,
    user_id: int,
    owner: tuple[int, str],
    by: Actor,
    now_ms: int,
    *,
    anonymise: bool = False,
) -> None:
    """Remove everything personal of a user, in a transaction that has checked that they may go.

    Args:
        owner: the id and name of the user's own space.
        anonymise: whether to remove their name and addresses from the audit log.
    """
    mine = select(tables.email.c.address).where(tables.email.c.user_id == user_id)
    addresses = connection.execute(mine).scalars().all()
    _trash_own_teams(connection, user_id, by, now_ms)
    for table in _PERSONAL:
        connection.execute(delete(table).where(table.c.user_id == user_id))
    leave_reports(connection, user_id)
    provisioned = sign_on_tables.scim_resource
    connection.execute(delete(provisioned).where(provisioned.c.entity_id == owner[0]))
    remove_picture(connection, owner[0])
    connection.execute(update(project).where(project.c.owner_id == user_id).values(owner_id=None))
    by_or_to = (tables.invitation.c.invited_by == user_id) | (tables.invitation.c.user_id == user_id)
    pending = update(tables.invitation).where(by_or_to, tables.invitation.c.state == "pending")
    connection.execute(pending.values(state="revoked", ended_ms=now_ms))
    wiped = {
        "display_name": DELETED_NAME,
        "profile": "{}",
        "state": "deleted",
        "org_role": "member",
        "access": "none",
        "billing_role": "none",
        "default_entity_id": None,
        "delete_after_ms": None,
        "deleted_ms": now_ms,
    }
    connection.execute(update(user_account).where(user_account.c.id == user_id).values(wiped))
    connection.execute(update(entity).where(entity.c.id == owner[0]).values(deleted_ms=now_ms))
    record(connection, now_ms, by, "user.delete", entity=owner)
    if anonymise:
        anonymise_user(connection, user_id, owner, addresses)
    rights_changed(connection)


def team_ids(connection: Connection, user_id: int) -> list[int]:
    """Return the teams that a user is in, in the order in which their rows are locked."""
    return sorted(
        connection.execute(select(membership.c.team_id).where(membership.c.user_id == user_id)).scalars()
    )


def _trash_own_teams(connection: Connection, user_id: int, by: Actor, now_ms: int) -> None:
    """Move the teams to the trash of which the user is the only member."""
    for team_id in team_ids(connection, user_id):
        if len(lock_members(connection, team_id)) == 1:
            living = update(entity).where(entity.c.id == team_id, entity.c.deleted_ms.is_(None))
            if connection.execute(living.values(deleted_ms=now_ms)).rowcount:
                record(connection, now_ms, by, "team.delete", entity=name_of(connection, team_id))
