"""Access that ends soon: keys, memberships, guest links, and accounts whose deletion was requested."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Row, Select, exists, func, select

from runvitals.server.database.database import StoredTable
from runvitals.server.database.tables.accounts import (
    api_key,
    audit_event,
    entity,
    membership,
    service_account,
    user_account,
)
from runvitals.server.database.tables.projects import guest_link
from runvitals.server.database.tables.runs import project, run


@dataclass(frozen=True, slots=True)
class EndingKey:
    """A key in use that ends.

    Attributes:
        name: of its owner: a user or a service account.
        user_id: None for a service account's key.
        team: of the service account; None: of the organisation.
        set_ms: since when the end is known: the key was created, or rotated.
    """

    id: int
    key_name: str
    public_id: str
    name: str
    user_id: int | None
    team: str | None
    set_ms: int
    end_ms: int


@dataclass(frozen=True, slots=True)
class EndingMembership:
    """A membership with an end."""

    id: int
    user_id: int
    team: str
    set_ms: int
    end_ms: int


@dataclass(frozen=True, slots=True)
class EndingGuestLink:
    """A guest link that ends. `user_id`: who made it. `run`: None for a link to the whole project."""

    id: int
    user_id: int
    entity: str
    project: str
    run: str | None
    set_ms: int
    end_ms: int


@dataclass(frozen=True, slots=True)
class EndingAccount:
    """An account that will be deleted. `set_ms`: when its user asked for that."""

    user_id: int
    name: str
    set_ms: int
    end_ms: int


class EndingAccess(StoredTable):
    """Finds what ends within some time. Users who may not sign in, and what is in the trash, are left out."""

    def keys(self, from_ms: int, until_ms: int, used_since_ms: int) -> list[EndingKey]:
        """Keys that were used since a time; after a rotation, only those used since the rotation."""
        successor = api_key.alias()
        rotated_ms = select(func.max(successor.c.created_ms)).where(
            successor.c.rotated_from_id == api_key.c.id
        )
        set_ms = func.coalesce(rotated_ms.scalar_subquery(), api_key.c.created_ms)
        user_name, team = entity.alias(), entity.alias()
        statement = (
            select(
                api_key.c.id,
                api_key.c.name.label("key_name"),
                api_key.c.public_id,
                func.coalesce(user_name.c.name, service_account.c.name).label("name"),
                api_key.c.user_id,
                team.c.name.label("team"),
                set_ms.label("set_ms"),
                api_key.c.expires_ms.label("end_ms"),
            )
            .outerjoin(user_account, user_account.c.id == api_key.c.user_id)
            .outerjoin(user_name, user_name.c.id == user_account.c.entity_id)
            .outerjoin(service_account, service_account.c.id == api_key.c.service_account_id)
            .outerjoin(team, team.c.id == service_account.c.team_id)
            .where(
                *_within(api_key.c.expires_ms, from_ms, until_ms),
                api_key.c.revoked_ms.is_(None),
                api_key.c.last_used_ms >= used_since_ms,
                api_key.c.last_used_ms >= set_ms,
                user_account.c.id.is_(None) | (user_account.c.state == "active"),
                service_account.c.disabled_ms.is_(None),
                service_account.c.deleted_ms.is_(None),
                team.c.deleted_ms.is_(None),
            )
        )
        return [EndingKey(**row._asdict()) for row in self._rows(statement)]

    def memberships(self, from_ms: int, until_ms: int) -> list[EndingMembership]:
        """Memberships that end."""
        statement = (
            select(
                membership.c.id,
                membership.c.user_id,
                entity.c.name.label("team"),
                membership.c.created_ms.label("set_ms"),
                membership.c.expires_ms.label("end_ms"),
            )
            .join(entity, entity.c.id == membership.c.team_id)
            .join(user_account, user_account.c.id == membership.c.user_id)
            .where(
                *_within(membership.c.expires_ms, from_ms, until_ms),
                entity.c.deleted_ms.is_(None),
                user_account.c.state == "active",
            )
        )
        return [EndingMembership(**row._asdict()) for row in self._rows(statement)]

    def guest_links(self, from_ms: int, until_ms: int) -> list[EndingGuestLink]:
        """Guest links whose makers are still in the team that has the project, or have it themselves."""
        linked = func.coalesce(guest_link.c.project_id, run.c.project_id)
        member = exists().where(
            membership.c.team_id == project.c.entity_id, membership.c.user_id == guest_link.c.created_by
        )
        statement = (
            select(
                guest_link.c.id,
                guest_link.c.created_by.label("user_id"),
                entity.c.name.label("entity"),
                project.c.name.label("project"),
                run.c.uid.label("run"),
                guest_link.c.created_ms.label("set_ms"),
                guest_link.c.expires_ms.label("end_ms"),
            )
            .outerjoin(run, run.c.id == guest_link.c.run_id)
            .join(project, project.c.id == linked)
            .join(entity, entity.c.id == project.c.entity_id)
            .join(user_account, user_account.c.id == guest_link.c.created_by)
            .where(
                *_within(guest_link.c.expires_ms, from_ms, until_ms),
                guest_link.c.revoked_ms.is_(None),
                project.c.deleted_ms.is_(None),
                run.c.deleted_ms.is_(None),
                entity.c.deleted_ms.is_(None),
                user_account.c.state == "active",
                member | (user_account.c.entity_id == project.c.entity_id),
            )
        )
        return [EndingGuestLink(**row._asdict()) for row in self._rows(statement)]

    def accounts(self, from_ms: int, until_ms: int) -> list[EndingAccount]:
        """Accounts whose deletion was requested."""
        requested = select(func.max(audit_event.c.time_ms)).where(
            audit_event.c.action == "user.deletion_request",
            audit_event.c.entity_id == user_account.c.entity_id,
        )
        statement = (
            select(
                user_account.c.id.label("user_id"),
                entity.c.name,
                func.coalesce(requested.scalar_subquery(), user_account.c.created_ms).label("set_ms"),
                user_account.c.delete_after_ms.label("end_ms"),
            )
            .join(entity, entity.c.id == user_account.c.entity_id)
            .where(
                *_within(user_account.c.delete_after_ms, from_ms, until_ms),
                user_account.c.deleted_ms.is_(None),
            )
        )
        return [EndingAccount(**row._asdict()) for row in self._rows(statement)]

    def _rows(self, statement: Select[tuple[object, ...]]) -> list[Row[tuple[object, ...]]]:
        with self._database.read() as connection:
            return list(connection.execute(statement))


def _within(
    end_ms: ColumnElement[int | None] | ColumnElement[int], from_ms: int, until_ms: int
) -> tuple[ColumnElement[bool], ...]:
    return end_ms > from_ms, end_ms <= until_ms
