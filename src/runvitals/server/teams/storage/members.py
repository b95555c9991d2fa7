"""Members of teams, and the roles they have there."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select, update

from runvitals.server.accounts.storage.administrators import check_team_administrators, lock_members
from runvitals.server.accounts.storage.entities import name_of
from runvitals.server.accounts.storage.users import user_by_name
from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import StoredTable, among, in_transaction
from runvitals.server.database.limits import check_room
from runvitals.server.database.rights_generation import rights_changed
from runvitals.server.database.tables.accounts import (
    custom_role,
    email,
    entity,
    invitation,
    membership,
    project_member,
    team_join_request,
    user_account,
)
from runvitals.server.database.tables.runs import project
from runvitals.server.organisation.storage.roles import role_by_name
from runvitals.server.reports.storage.leaving import leave_reports_of_team
from runvitals.server.teams.storage.teams import living_team, revoke_invitations
from runvitals.store.errors import NameTaken, NotFound

ROLES = ("viewer", "member", "admin")
MAX_TEAMS = 200
"""Of one user."""


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A member of a team. `address`: the primary one, if it is verified. `added_by`: a user name."""

    user_id: int
    name: str
    display_name: str
    address: str | None
    role: str
    custom_role: str | None
    access: str
    created_ms: int
    last_seen_ms: int | None
    expires_ms: int | None
    added_by: str | None


_adder, _adder_name = user_account.alias(), entity.alias()
_MEMBERS = (
    select(
        membership.c.user_id,
        entity.c.name,
        user_account.c.display_name,
        email.c.address,
        membership.c.role,
        custom_role.c.name.label("custom_role"),
        user_account.c.access,
        membership.c.created_ms,
        user_account.c.last_seen_ms,
        membership.c.expires_ms,
        _adder_name.c.name.label("added_by"),
    )
    .join(user_account, user_account.c.id == membership.c.user_id)
    .join(entity, entity.c.id == user_account.c.entity_id)
    .outerjoin(custom_role, custom_role.c.id == membership.c.custom_role_id)
    .outerjoin(
        email,
        (email.c.user_id == user_account.c.id) & email.c.is_primary & email.c.verified_ms.is_not(None),
    )
    .outerjoin(_adder, _adder.c.id == membership.c.added_by)
    .outerjoin(_adder_name, _adder_name.c.id == _adder.c.entity_id)
)


class MemberTable(StoredTable):
    """The table of memberships."""

    def of_team(self, team_name: str) -> list[MemberRow]:
        """Return the members of a team by name."""
        with self._database.read() as connection:
            team = living_team(connection, team_name)
            statement = _MEMBERS.where(membership.c.team_id == team.id).order_by(entity.c.name)
            return [MemberRow(**row._asdict()) for row in connection.execute(statement)]

    def of_teams(self, team_ids: Collection[int]) -> dict[int, list[MemberRow]]:
        """Return the members of teams by the ids of the teams, each by name."""
        members: dict[int, list[MemberRow]] = {}
        with self._database.read() as connection:
            mine = among(connection, membership.c.team_id, team_ids)
            listed = _MEMBERS.add_columns(membership.c.team_id).where(mine).order_by(entity.c.name)
            for row in connection.execute(listed):
                fields = {name: getattr(row, name) for name in MemberRow.__dataclass_fields__}
                members.setdefault(row.team_id, []).append(MemberRow(**fields))
        return members

    def get(self, team_name: str, user_name: str) -> MemberRow:
        """Return a member of a team.

        Raises:
            NotFound: there is no such team, or the user is not in it.
        """
        with self._database.read() as connection:
            team = living_team(connection, team_name)
            mine = (membership.c.team_id == team.id, entity.c.name == user_name.lower())
            row = connection.execute(_MEMBERS.where(*mine)).first()
        if row is None:
            raise _no_member(team_name, user_name)
        return MemberRow(**row._asdict())

    @in_transaction
    def add(
        self,
        connection: Connection,
        team_name: str,
        user_name: str,
        role: str,
        by: Actor,
        now_ms: int,
        expires_ms: int | None = None,
        action: str = "team.member_add",
    ) -> None:
        """Add a user to a team. `role`: viewer, member, admin, or the name of a custom role.

        Raises:
            NotFound: there is no such team, user or role.
            NameTaken: the user is in the team already.
            LimitReached: the user is in too many teams.
        """
        team = living_team(connection, team_name)
        user = user_by_name(connection, user_name)
        base, role_id = resolve_role(connection, role)
        add_member(connection, team.id, user.id, base, role_id, by.user_id, now_ms, expires_ms)
        about = {"role": role}
        owner = (team.id, team.name)
        record(connection, now_ms, by, action, entity=owner, target=user.name, after=about)

    @in_transaction
    def set_role(
        self, connection: Connection, team_name: str, user_name: str, role: str, by: Actor, now_ms: int
    ) -> None:
        """Change a member's role.

        Raises:
            LastAdministrator: the team would be left without an administrator.
            NotFound: there is no such team, member or role.
        """
        team = living_team(connection, team_name)
        user = user_by_name(connection, user_name)
        before = lock_members(connection, team.id).get(user.id)
        if before is None:
            raise _no_member(team_name, user_name)
        base, role_id = resolve_role(connection, role)
        if base != "admin":
            check_team_administrators(connection, team.id, user.id, stays=True)
        mine = (membership.c.team_id == team.id, membership.c.user_id == user.id)
        connection.execute(update(membership).where(*mine).values(role=base, custom_role_id=role_id))
        if before == "admin" and base != "admin":
            theirs = (invitation.c.team_id == team.id, invitation.c.invited_by == user.id)
            revoke_invitations(connection, now_ms, *theirs)
        record(
            connection,
            now_ms,
            by,
            "team.member_role",
            entity=(team.id, team.name),
            target=user.name,
            before={"role": before},
            after={"role": role},
        )
        rights_changed(connection)

    @in_transaction
    def set_end(
        self,
        connection: Connection,
        team_name: str,
        user_name: str,
        expires_ms: int | None,
        by: Actor,
        now_ms: int,
    ) -> None:
        """Set the time when a membership ends; None: never.

        Raises:
            ValueError: the time is in the past, or the member is an administrator, who stays until demoted.
            NotFound: there is no such team or member.
        """
        if expires_ms is not None and expires_ms <= now_ms:
            raise ValueError("the membership would have ended already")
        team = living_team(connection, team_name)
        user = user_by_name(connection, user_name)
        mine = (membership.c.team_id == team.id, membership.c.user_id == user.id)
        row = connection.execute(select(membership).where(*mine).with_for_update()).first()
        if row is None:
            raise _no_member(team_name, user_name)
        if row.role == "admin" and expires_ms is not None:
            raise ValueError("the membership of an administrator cannot end by itself")
        connection.execute(update(membership).where(*mine).values(expires_ms=expires_ms))
        old, new = {"expires_ms": row.expires_ms}, {"expires_ms": expires_ms}
        owner = (team.id, team.name)
        record(
            connection,
            now_ms,
            by,
            "team.member_role",
            entity=owner,
            target=user.name,
            before=old,
            after=new,
        )
        rights_changed(connection)

    @in_transaction
    def remove(self, connection: Connection, team_name: str, user_name: str, by: Actor, now_ms: int) -> None:
        """Remove a member, or leave. Runs stay with the team; roles in its projects go.

        Raises:
            LastAdministrator: members would be left without an administrator.
            NotFound: there is no such team or member.
        """
        team = living_team(connection, team_name)
        user = user_by_name(connection, user_name)
        if not remove_member(connection, team.id, user.id, now_ms):
            raise _no_member(team_name, user_name)
        action = "team.member_leave" if by.user_id == user.id else "team.member_remove"
        record(connection, now_ms, by, action, entity=(team.id, team.name), target=user.name)

    @in_transaction
    def remove_expired(self, connection: Connection, by: Actor, now_ms: int) -> int:
        """End memberships whose time is over; returns how many. A last administrator stays."""
        over = (
            select(membership.c.team_id, membership.c.user_id, membership.c.role, entity.c.name)
            .join(user_account, user_account.c.id == membership.c.user_id)
            .join(entity, entity.c.id == user_account.c.entity_id)
            .where(membership.c.expires_ms <= now_ms)
        )
        ended = 0
        for row in connection.execute(over).all():
            if row.role != "admin" and remove_member(connection, row.team_id, row.user_id, now_ms):
                owner = name_of(connection, row.team_id)
                record(connection, now_ms, by, "team.member_expired", entity=owner, target=row.name)
                ended += 1
        return ended


def _no_member(team_name: str, user_name: str) -> NotFound:
    return NotFound(f"{user_name} is not a member of {team_name}")


def resolve_role(connection: Connection, role: str) -> tuple[str, int | None]:
    """Return the built-in role, and the id of the custom role if it is one; or raise NotFound."""
    if role in ROLES:
        return role, None
    custom = role_by_name(connection, role)
    return custom.base, custom.id


def add_member(
    connection: Connection,
    team_id: int,
    user_id: int,
    role: str,
    role_id: int | None,
    added_by: int | None,
    now_ms: int,
    expires_ms: int | None = None,
) -> None:
    """Add a member in a transaction. A pending request of theirs to join the team is approved by it.

    Args:
        added_by: the user who added or invited them; themselves where they joined by themselves.

    Raises:
        NameTaken: the user is in the team already.
        LimitReached: the user is in too many teams.
    """
    mine = (membership.c.team_id == team_id, membership.c.user_id == user_id)
    if connection.execute(select(membership.c.id).where(*mine)).first() is not None:
        raise NameTaken("this user is already a member of the team")
    refusal = f"this user is in {MAX_TEAMS} teams, which is the most that are allowed"
    theirs = membership.c.user_id == user_id
    check_room(connection, membership, MAX_TEAMS, refusal, theirs, owner_id=user_id)
    values = {
        "team_id": team_id,
        "user_id": user_id,
        "role": role,
        "custom_role_id": role_id,
        "added_by": added_by,
        "created_ms": now_ms,
        "expires_ms": expires_ms,
    }
    connection.execute(insert(membership).values(values))
    requests = update(team_join_request).where(
        team_join_request.c.team_id == team_id,
        team_join_request.c.user_id == user_id,
        team_join_request.c.state == "pending",
    )
    connection.execute(requests.values(state="approved", ended_ms=now_ms, ended_by=added_by))
    rights_changed(connection)


def remove_member(connection: Connection, team_id: int, user_id: int, now_ms: int) -> bool:
    """Remove a member in a transaction; False if the user was none. Raises LastAdministrator."""
    check_team_administrators(connection, team_id, user_id)
    mine = (membership.c.team_id == team_id, membership.c.user_id == user_id)
    removed = connection.execute(delete(membership).where(*mine)).rowcount
    projects = select(project.c.id).where(project.c.entity_id == team_id)
    connection.execute(
        delete(project_member).where(
            project_member.c.user_id == user_id, project_member.c.project_id.in_(projects)
        )
    )
    leave_reports_of_team(connection, user_id, team_id)
    theirs = (invitation.c.team_id == team_id, invitation.c.invited_by == user_id)
    revoke_invitations(connection, now_ms, *theirs)
    owned = update(project).where(project.c.entity_id == team_id, project.c.owner_id == user_id)
    connection.execute(owned.values(owner_id=None))
    rights_changed(connection)
    return bool(removed)
