"""Custom roles: a base role and the actions it adds, which `access/decisions/custom_roles.py` checks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, delete, distinct, func, insert, select, update

from runvitals.model.names import plain_text
from runvitals.server.accounts.storage.entities import name_of
from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import StoredTable, in_transaction
from runvitals.server.database.limits import check_room, take_turns
from runvitals.server.database.rights_generation import rights_changed
from runvitals.server.database.tables.accounts import (
    custom_role,
    custom_role_action,
    entity,
    invitation,
    membership,
    user_account,
)
from runvitals.server.teams.storage.teams import revoke_invitations
from runvitals.store.errors import NameTaken, NotFound

MAX_ROLES = 50


@dataclass(frozen=True, slots=True)
class RoleRow:
    """A custom role. `users`: how many memberships have it, in how many `teams`."""

    id: int
    name: str
    description: str
    base: str
    actions: frozenset[str]
    users: int
    teams: int


class RoleTable(StoredTable):
    """The table of custom roles."""

    @in_transaction
    def create(
        self,
        connection: Connection,
        name: str,
        base: str,
        actions: Collection[str],
        description: str,
        by: Actor,
        now_ms: int,
    ) -> RoleRow:
        """Create a custom role from values that were checked.

        Raises:
            NameTaken: there is a role of this name, in any case of letters.
            LimitReached: there are too many roles.
        """
        added = sorted(set(actions))
        refusal = f"too many custom roles; at most {MAX_ROLES} are allowed"
        check_room(connection, custom_role, MAX_ROLES, refusal)
        _check_free(connection, name)
        values = {
            "name": name,
            "name_key": name.casefold(),
            "description": description,
            "base": base,
            "created_ms": now_ms,
        }
        connection.execute(insert(custom_role).values(values))
        role = role_by_name(connection, name)
        _set_actions(connection, role.id, added)
        record(connection, now_ms, by, "role.create", target=name, after={"base": base, "actions": added})
        return role_by_name(connection, name)

    def all(self) -> list[RoleRow]:
        """Return all custom roles by name."""
        with self._database.read() as connection:
            return _roles(connection)

    def get(self, name: str) -> RoleRow:
        """Return a custom role by its name, or raise NotFound."""
        with self._database.read() as connection:
            return role_by_name(connection, name)

    @in_transaction
    def update(
        self,
        connection: Connection,
        current: str,
        by: Actor,
        now_ms: int,
        *,
        name: str,
        description: str,
        actions: Collection[str],
    ) -> RoleRow:
        """Change a role, for everybody who has it, to values that were checked.

        Raises:
            NameTaken: another role has the name.
            NotFound: there is no custom role of the `current` name.
        """
        requested = frozenset(actions)
        role = role_by_name(connection, current)
        if name.casefold() != role.name.casefold():
            _check_free(connection, name)
        values = {"name": name, "name_key": name.casefold(), "description": description}
        connection.execute(update(custom_role).where(custom_role.c.id == role.id).values(values))
        _set_actions(connection, role.id, sorted(requested))
        changed = {"added": sorted(requested - role.actions), "removed": sorted(role.actions - requested)}
        old = {"name": role.name} if name != role.name else None
        record(connection, now_ms, by, "role.update", target=name, before=old, after=changed)
        rights_changed(connection)
        return role_by_name(connection, name)

    @in_transaction
    def delete(self, connection: Connection, name: str, by: Actor, now_ms: int) -> int:
        """Delete a role; its members keep the base role. Returns how many they were."""
        role = role_by_name(connection, name)
        holders = connection.execute(
            select(membership.c.team_id, entity.c.name)
            .join(user_account, user_account.c.id == membership.c.user_id)
            .join(entity, entity.c.id == user_account.c.entity_id)
            .where(membership.c.custom_role_id == role.id)
        ).all()
        theirs = update(membership).where(membership.c.custom_role_id == role.id)
        moved = connection.execute(theirs.values(custom_role_id=None)).rowcount
        revoke_invitations(connection, now_ms, invitation.c.custom_role_id == role.id)
        connection.execute(delete(custom_role).where(custom_role.c.id == role.id))
        record(connection, now_ms, by, "role.delete", target=name, after={"moved": moved})
        old, new = {"role": role.name}, {"role": role.base}
        for team_id, user in holders:
            team = name_of(connection, team_id)
            record(
                connection,
                now_ms,
                by,
                "team.member_role",
                entity=team,
                target=user,
                before=old,
                after=new,
            )
        rights_changed(connection)
        return moved


def role_by_name(connection: Connection, name: str) -> RoleRow:
    """Return a custom role by its name, in a transaction, or raise NotFound."""
    roles = _roles(connection, custom_role.c.name_key == plain_text(name).casefold())
    if not roles:
        raise NotFound(f"there is no role {name!r}; expected viewer, member, admin or a custom role")
    return roles[0]


def _roles(connection: Connection, *conditions: ColumnElement[bool]) -> list[RoleRow]:
    actions: dict[int, set[str]] = {}
    added = select(custom_role_action).join(custom_role, custom_role.c.id == custom_role_action.c.role_id)
    for row in connection.execute(added.where(*conditions)):
        actions.setdefault(row.role_id, set()).add(row.action)
    users = (
        select(
            membership.c.custom_role_id,
            func.count().label("users"),
            func.count(distinct(membership.c.team_id)).label("teams"),
        )
        .group_by(membership.c.custom_role_id)
        .subquery()
    )
    listed = (
        select(custom_role, users.c.users, users.c.teams)
        .outerjoin(users, users.c.custom_role_id == custom_role.c.id)
        .where(*conditions)
        .order_by(custom_role.c.name_key)
    )
    return [
        RoleRow(
            row.id,
            row.name,
            row.description,
            row.base,
            frozenset(actions.get(row.id, ())),
            row.users or 0,
            row.teams or 0,
        )
        for row in connection.execute(listed)
    ]


def _check_free(connection: Connection, name: str) -> None:
    same_name = select(custom_role.c.id).where(custom_role.c.name_key == name.casefold())
    if connection.execute(same_name).first() is not None:
        raise NameTaken(f"the role {name!r} already exists")


def _set_actions(connection: Connection, role_id: int, actions: list[str]) -> None:
    take_turns(connection, "custom_role_action", role_id)
    connection.execute(delete(custom_role_action).where(custom_role_action.c.role_id == role_id))
    if actions:
        rows = [{"role_id": role_id, "action": action} for action in actions]
        connection.execute(insert(custom_role_action), rows)
