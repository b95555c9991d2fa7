"""Members of registries of the organisation. The members of a team's registry are those of the team."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from sqlalchemy import Connection, delete, func, insert, select

from runvitals.server.artifacts.storage.protection import Changer
from runvitals.server.database.database import Database
from runvitals.server.database.rights_generation import rights_changed
from runvitals.server.database.tables.accounts import entity, project_member, user_account
from runvitals.server.registry.storage.registries import record_registry
from runvitals.store.errors import LimitReached, NotFound

MAX_MEMBERS: Final = 10_000

RegistryRole = Literal["viewer", "member"]


@dataclass(frozen=True, slots=True)
class RegistryMember:
    """A member of a registry. `created_ms`: since when, or since when with this role."""

    user_id: int
    name: str
    display_name: str
    role: RegistryRole
    created_ms: int


class RegistryMemberTable:
    """The members of registries.

    Example:
        >>> metadata_store.registry_members.put(registry.id, user.id, "member", now_ms, by)
        >>> [member.name for member in metadata_store.registry_members.page(registry.id, 0, 10)[0]]
        ['ada']
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def page(self, project_id: int, skip: int, limit: int) -> tuple[list[RegistryMember], int]:
        """A page of the members of a registry by name, and how many there are."""
        columns = project_member.c
        members = (
            select(
                columns.user_id, entity.c.name, user_account.c.display_name, columns.role, columns.created_ms
            )
            .join(user_account, user_account.c.id == columns.user_id)
            .join(entity, entity.c.id == user_account.c.entity_id)
            .where(columns.project_id == project_id)
        )
        with self._database.read() as connection:
            rows = connection.execute(members.order_by(entity.c.name).offset(skip).limit(limit))
            return [RegistryMember(*row) for row in rows], _count(connection, project_id)

    def put(self, project_id: int, user_id: int, role: RegistryRole, now_ms: int, by: Changer) -> None:
        """Add a user to a registry, or change their role there.

        Raises:
            LimitReached: the registry has too many members.
        """
        columns = project_member.c
        same = (columns.project_id == project_id, columns.user_id == user_id)

        def work(connection: Connection) -> None:
            before = connection.execute(select(columns.role).where(*same)).scalar()
            if before == role:
                return
            if before is None and _count(connection, project_id) >= MAX_MEMBERS:
                raise LimitReached(f"the registry has {MAX_MEMBERS:,} members: remove one first")
            row = {"project_id": project_id, "user_id": user_id, "role": role, "created_ms": now_ms}
            connection.execute(delete(project_member).where(*same))
            connection.execute(insert(project_member).values(row))
            rights_changed(connection)
            name = _name(connection, user_id)
            action = "registry.member_add" if before is None else "registry.member_role"
            was = None if before is None else {"user": name, "role": before}
            now = {"user": name, "role": role}
            record_registry(connection, project_id, action, now_ms, by, before=was, after=now)

        self._database.write(work)

    def remove(self, project_id: int, user_id: int, now_ms: int, by: Changer) -> None:
        """Remove a user from a registry.

        Raises:
            NotFound: they are no member.
        """
        columns = project_member.c
        same = (columns.project_id == project_id, columns.user_id == user_id)

        def work(connection: Connection) -> None:
            name = _name(connection, user_id)
            if not connection.execute(delete(project_member).where(*same)).rowcount:
                raise NotFound(f"{name!r} is no member of the registry")
            rights_changed(connection)
            record_registry(
                connection, project_id, "registry.member_remove", now_ms, by, before={"user": name}
            )

        self._database.write(work)


def _count(connection: Connection, project_id: int) -> int:
    members = select(func.count()).where(
        project_member.c.project_id == project_id, project_member.c.user_id.is_not(None)
    )
    return int(connection.execute(members).scalar_one())


def _name(connection: Connection, user_id: int) -> str:
    named = select(entity.c.name).join(user_account, user_account.c.entity_id == entity.c.id)
    return str(connection.execute(named.where(user_account.c.id == user_id)).scalar_one())
