"""Users and teams with a role in registries of the organisation. A team's registry has those of the team."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from sqlalchemy import Connection, delete, func, insert, select

from runvitals.server.artifacts.storage.protection import Changer
from runvitals.server.database.database import Database
from runvitals.server.database.limits import check_room, take_turns
from runvitals.server.database.rights_generation import rights_changed
from runvitals.server.database.tables.accounts import entity, project_member, team, user_account
from runvitals.server.database.tables.registry import registry_team
from runvitals.server.registry.storage.registries import record_registry
from runvitals.store.errors import NotFound

MAX_MEMBERS: Final = 10_000

RegistryRole = Literal["viewer", "member", "admin"]
"""Users who are `admin` are in `RegistryTable.admins`; teams are here."""


@dataclass(frozen=True, slots=True)
class RegistryMember:
    """A user or team with a role in a registry.

    Attributes:
        id: of the user, or of the team as an entity.
        created_ms: since when they have this role.
    """

    id: int
    name: str
    display_name: str
    role: RegistryRole
    created_ms: int


class RegistryMemberTable:
    """The users, or the teams, with a role in registries.

    Example:
        >>> metadata_store.registry_members.put(registry.id, user.id, "member", now_ms, by)
        >>> [member.name for member in metadata_store.registry_members.page(registry.id, 0, 10)[0]]
        ['ada']
    """

    def __init__(self, database: Database, kind: Literal["user", "team"]) -> None:
        self._database = database
        self._kind = kind
        self._rows = project_member if kind == "user" else registry_team
        self._id = self._rows.c[f"{kind}_id"]
        account = user_account if kind == "user" else team
        self._names = (
            select(
                self._id, entity.c.name, account.c.display_name, self._rows.c.role, self._rows.c.created_ms
            )
            .join(account, (account.c.id if kind == "user" else account.c.entity_id) == self._id)
            .join(entity, entity.c.id == account.c.entity_id)
            .where(entity.c.deleted_ms.is_(None))
        )

    def page(self, project_id: int, skip: int, limit: int) -> tuple[list[RegistryMember], int]:
        """A page of those with a role in a registry, by name, and how many there are."""
        members = self._names.where(self._rows.c.project_id == project_id)
        counted = select(func.count()).select_from(members.subquery())
        with self._database.read() as connection:
            rows = connection.execute(members.order_by(entity.c.name).offset(skip).limit(limit))
            people = [RegistryMember(*row) for row in rows]
            return people, int(connection.execute(counted).scalar_one())

    def put(self, project_id: int, member_id: int, role: RegistryRole, now_ms: int, by: Changer) -> None:
        """Give a user or team a role in a registry, or another one.

        Raises:
            LimitReached: the registry has too many members.
        """
        columns = self._rows.c
        same = (columns.project_id == project_id, self._id == member_id)

        def work(connection: Connection) -> None:
            take_turns(connection, self._rows.name, project_id)
            before = connection.execute(select(columns.role).where(*same)).scalar()
            if before == role:
                return
            if before is None:
                refusal = f"the registry has {MAX_MEMBERS:,} members: remove one first"
                members = columns.project_id == project_id, self._id.is_not(None)
                check_room(connection, self._rows, MAX_MEMBERS, refusal, *members, owner_id=project_id)
            row = {"project_id": project_id, self._id.name: member_id, "role": role, "created_ms": now_ms}
            connection.execute(delete(self._rows).where(*same))
            connection.execute(insert(self._rows).values(row))
            rights_changed(connection)
            name = self._name(connection, member_id)
            action = "registry.member_add" if before is None else "registry.member_role"
            was = None if before is None else {self._kind: name, "role": before}
            now = {self._kind: name, "role": role}
            record_registry(connection, project_id, action, now_ms, by, before=was, after=now)

        self._database.write(work)

    def remove(self, project_id: int, member_id: int, now_ms: int, by: Changer) -> None:
        """Take a user or team the role in a registry.

        Raises:
            NotFound: they have none.
        """
        same = (self._rows.c.project_id == project_id, self._id == member_id)

        def work(connection: Connection) -> None:
            name = self._name(connection, member_id)
            if not connection.execute(delete(self._rows).where(*same)).rowcount:
                raise NotFound(f"{name!r} is no member of the registry")
            rights_changed(connection)
            was = {self._kind: name}
            record_registry(connection, project_id, "registry.member_remove", now_ms, by, before=was)

        self._database.write(work)

    def _name(self, connection: Connection, member_id: int) -> str:
        query = select(entity.c.name).where(entity.c.id == member_id)
        if self._kind == "user":
            query = (
                select(entity.c.name)
                .join(user_account, user_account.c.entity_id == entity.c.id)
                .where(user_account.c.id == member_id)
            )
        return str(connection.execute(query).scalar_one())
