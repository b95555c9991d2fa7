"""Memberships that follow the groups of a provider. Those given by hand stay as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, insert, select, update

from runvitals.server.accounts.storage.administrators import administrator_by, check_team_administrators
from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import StoredTable
from runvitals.server.database.rights_generation import rights_changed
from runvitals.server.database.tables.accounts import entity, membership, user_account
from runvitals.server.database.tables.sign_on import group_membership
from runvitals.server.teams.storage.members import add_member, remove_member, resolve_role
from runvitals.server.teams.storage.teams import living_team
from runvitals.store.errors import LastAdministrator, NotFound


@dataclass(frozen=True, slots=True)
class _Present:
    id: int
    team_id: int
    team: str
    role: str
    custom_role_id: int | None
    provider: str | None


class GroupMembershipTable(StoredTable):
    """The table of memberships that came from groups."""

    def follow(
        self, user_id: int, provider: str, roles: Mapping[str, str], by: Actor, now_ms: int
    ) -> list[str]:
        """Change the memberships from a provider's groups to these roles.

        Args:
            roles: the role by the name of the team.

        Returns:
            What was not done and why: a team that does not exist, or that would lose its last administrator.
        """
        problems: list[str] = []

        def work(connection: Connection) -> None:
            problems.clear()  # the transaction may be run again
            present = _present_roles(connection, user_id)
            for team, role in roles.items():
                try:
                    _give(connection, user_id, provider, team, role, present.get(team), by, now_ms)
                except (LastAdministrator, NotFound) as error:
                    problems.append(f"{team}: {error}")
            for team, row in present.items():
                if row.provider == provider and team not in roles:
                    problem = _take(connection, user_id, row, by, now_ms)
                    problems.extend([f"{team}: {problem}"] if problem else [])

        self._database.write(work)
        return problems

    def administrator_by(self, user_id: int) -> str | None:
        """Return the provider whose group made a user an administrator; None: no group did."""
        with self._database.read() as connection:
            return administrator_by(connection, user_id)


def _present_roles(connection: Connection, user_id: int) -> dict[str, _Present]:
    rows = connection.execute(
        select(
            membership.c.id,
            membership.c.team_id,
            entity.c.name.label("team"),
            membership.c.role,
            membership.c.custom_role_id,
            group_membership.c.provider,
        )
        .join(entity, entity.c.id == membership.c.team_id)
        .outerjoin(group_membership, group_membership.c.membership_id == membership.c.id)
        .where(membership.c.user_id == user_id)
        .order_by(membership.c.team_id)
        .with_for_update(of=membership)
    )
    return {row.team: _Present(**row._asdict()) for row in rows}


def _give(
    connection: Connection,
    user_id: int,
    provider: str,
    team: str,
    role: str,
    present: _Present | None,
    by: Actor,
    now_ms: int,
) -> None:
    team_row = living_team(connection, team)
    base, custom_role_id = resolve_role(connection, role)
    about = {"role": role, "group_of": provider}
    if present is None:
        add_member(connection, team_row.id, user_id, base, custom_role_id, by.user_id, now_ms)
        mine = (membership.c.team_id == team_row.id, membership.c.user_id == user_id)
        membership_id = connection.execute(select(membership.c.id).where(*mine)).scalar_one()
        values = {"membership_id": membership_id, "provider": provider}
        connection.execute(insert(group_membership).values(values))
        action = "team.member_add"
    elif present.provider != provider or (present.role, present.custom_role_id) == (base, custom_role_id):
        return  # given by hand, or as it should be
    else:
        _set_role(connection, user_id, present, base, custom_role_id)
        action = "team.member_role"
    owner = (team_row.id, team_row.name)
    record(connection, now_ms, by, action, entity=owner, target=_name(connection, user_id), after=about)
    rights_changed(connection)


def _take(connection: Connection, user_id: int, row: _Present, by: Actor, now_ms: int) -> str | None:
    """Remove a membership; returns why not."""
    try:
        remove_member(connection, row.team_id, user_id, now_ms)
    except LastAdministrator as error:
        return str(error)
    owner = (row.team_id, row.team)
    record(connection, now_ms, by, "team.member_remove", entity=owner, target=_name(connection, user_id))
    return None


def _name(connection: Connection, user_id: int) -> str:
    statement = select(entity.c.name).join(user_account, user_account.c.entity_id == entity.c.id)
    return str(connection.execute(statement.where(user_account.c.id == user_id)).scalar_one())


def _set_role(
    connection: Connection, user_id: int, present: _Present, role: str, custom_role_id: int | None
) -> None:
    if role != "admin":
        check_team_administrators(connection, present.team_id, user_id, stays=True)
    change = update(membership).where(membership.c.id == present.id)
    connection.execute(change.values(role=role, custom_role_id=custom_role_id))
