"""Protected aliases of registries: who may change them, and the audit log of what changes there."""

from __future__ import annotations

from collections.abc import Collection as Some
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, case, select

from runvitals.model.account_names import ORGANISATION
from runvitals.model.registry_names import is_registry, registry_name
from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.tables.accounts import entity, team, user_account
from runvitals.server.database.tables.artifacts import (
    artifact_alias,
    artifact_collection,
    artifact_membership,
)
from runvitals.server.database.tables.registry import protected_alias, registry_admin, registry_team
from runvitals.server.database.tables.runs import project
from runvitals.store.errors import ProtectedAlias


@dataclass(frozen=True, slots=True)
class Changer:
    """Who changes a collection.

    Attributes:
        actor: who it is in the audit log; None: the change is not recorded.
        protected: whether they may change protected aliases.
    """

    actor: Actor | None = None
    protected: bool = False


NOBODY: Final = Changer()


def check_aliases(
    connection: Connection, collection_id: int, aliases: Some[str], by: Changer, version_id: int | None = None
) -> None:
    """Check that some aliases of a collection may be set or removed.

    Args:
        version_id: aliases that this version has already are no change.

    Raises:
        ProtectedAlias: one is protected.
    """
    if by.protected or not aliases:
        return
    new_aliases = set(aliases)
    if version_id is not None:
        new_aliases -= _aliases_of(connection, collection_id, version_id)
    statement = (
        select(protected_alias.c.alias, protected_alias.c.project_id)
        .join(artifact_collection, artifact_collection.c.project_id == protected_alias.c.project_id)
        .where(artifact_collection.c.id == collection_id, protected_alias.c.alias.in_(sorted(new_aliases)))
    )
    _refuse(connection, statement)


def check_members(connection: Connection, which: ColumnElement[bool], by: Changer) -> None:
    """Check that some memberships may be removed.

    Args:
        which: a condition on `artifact_membership`.

    Raises:
        ProtectedAlias: one has a protected alias.
    """
    if by.protected:
        return
    alias_columns = artifact_alias.c
    statement = (
        select(alias_columns.alias, protected_alias.c.project_id)
        .join(artifact_membership, artifact_membership.c.id == alias_columns.membership_id)
        .join(artifact_collection, artifact_collection.c.id == alias_columns.collection_id)
        .join(
            protected_alias,
            (protected_alias.c.project_id == artifact_collection.c.project_id)
            & (protected_alias.c.alias == alias_columns.alias),
        )
        .where(which)
    )
    _refuse(connection, statement)


def _aliases_of(connection: Connection, collection_id: int, version_id: int) -> set[str]:
    statement = (
        select(artifact_alias.c.alias)
        .join(artifact_membership, artifact_membership.c.id == artifact_alias.c.membership_id)
        .where(
            artifact_membership.c.version_id == version_id, artifact_alias.c.collection_id == collection_id
        )
    )
    return set(connection.execute(statement).scalars())


def _refuse(connection: Connection, statement: Any) -> None:
    owner = case((entity.c.kind == ORGANISATION, ORGANISATION), else_="team")
    with_owner = (
        statement.add_columns(owner.label("owner"))
        .join(project, project.c.id == protected_alias.c.project_id)
        .outerjoin(entity, entity.c.id == project.c.entity_id)
    )
    protected = connection.execute(with_owner.order_by(protected_alias.c.alias).limit(1)).first()
    if protected is None:
        return
    names = admin_names(connection, protected.project_id) + _admin_teams(connection, protected.project_id)
    if names:
        raise ProtectedAlias(f"the alias {protected.alias!r} is protected: {', '.join(names)} may change it")
    raise ProtectedAlias(
        f"the alias {protected.alias!r} is protected, and the registry has no administrator who may change "
        f"it: an administrator of the {protected.owner} can appoint one"
    )


def admin_names(connection: Connection, project_id: int) -> list[str]:
    """Return the names of the administrators of a registry."""
    statement = (
        select(entity.c.name)
        .join(user_account, user_account.c.entity_id == entity.c.id)
        .join(registry_admin, registry_admin.c.user_id == user_account.c.id)
        .where(registry_admin.c.project_id == project_id)
        .order_by(entity.c.name)
    )
    return list(connection.execute(statement).scalars())


def _admin_teams(connection: Connection, project_id: int) -> list[str]:
    """Return which teams administer a registry, without hidden ones."""
    columns = registry_team.c
    statement = (
        select(entity.c.name)
        .join(team, team.c.entity_id == entity.c.id)
        .join(registry_team, columns.team_id == team.c.entity_id)
        .where(columns.project_id == project_id, columns.role == "admin", ~team.c.hidden)
        .order_by(entity.c.name)
    )
    return [f"the team {name}" for name in connection.execute(statement).scalars()]


def record_change(
    connection: Connection,
    collection_id: int,
    action: str,
    now_ms: int,
    by: Changer,
    *,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    """Record a change of a collection in the audit log, if it is in a registry of a team or user."""
    if by.actor is None:
        return
    statement = (
        select(project.c.name, entity.c.id, entity.c.name, artifact_collection.c.name)
        .select_from(artifact_collection)
        .join(project, project.c.id == artifact_collection.c.project_id)
        .join(entity, entity.c.id == project.c.entity_id)
        .where(artifact_collection.c.id == collection_id)
    )
    row = connection.execute(statement).first()
    if row is None or not is_registry(row[0]):
        return
    target = f"{registry_name(row[0])}/{row[3]}"
    collection_fields: Any = {"entity": (row[1], row[2]), "project": row[0], "target": target}
    record(connection, now_ms, by.actor, action, before=before, after=after, **collection_fields)
