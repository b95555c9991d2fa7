"""Registries: their descriptions, administrators and protected aliases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Select, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from runvitals.model.account_names import ORGANISATION
from runvitals.model.artifact_names import LATEST, checked_alias, checked_description, checked_label
from runvitals.model.registry_names import (
    PREFIX,
    checked_registry_name,
    project_of_registry,
    registry_name,
)
from runvitals.server.artifacts.storage.protection import Changer, admin_names, check_members
from runvitals.server.audit.storage.audit import record
from runvitals.server.database.database import StoredTable, add_rows, among, in_transaction
from runvitals.server.database.limits import take_turns
from runvitals.server.database.rights_generation import rights_changed
from runvitals.server.database.tables.accounts import entity, user_account
from runvitals.server.database.tables.artifacts import artifact_collection, artifact_membership
from runvitals.server.database.tables.registry import protected_alias, registry_admin, registry_type
from runvitals.server.database.tables.runs import project
from runvitals.server.projects.storage.projects import ProjectOwner, ensure_projects, find_projects
from runvitals.store.errors import LimitReached, NameTaken, NotFound

SORTS: Final = ("name", "-name", "-changed_ms", "-created_ms", "-versions")
MAX_PROTECTED: Final = 50
MAX_ADMINS: Final = 50
_SHARED: Final = ("organisation", "public", "open")


@dataclass(frozen=True, slots=True)
class RegistryRow:
    """A registry. Times are ms UTC.

    Args:
        id: of the project that it is.
        entity: the name of the team or user, or `organisation`; None on a server without accounts.
        visibility: `team`; `organisation`: all of it may read the registry; `restricted`: it is one of the
            organisation that only its members read.
    """

    id: int
    entity_id: int | None
    entity: str | None
    name: str
    description: str
    visibility: str
    created_ms: int
    collections: int
    versions: int
    changed_ms: int


@dataclass(frozen=True, slots=True)
class RegistryAdmin:
    """An administrator of a registry. `created_ms`: since when."""

    user_id: int
    name: str
    display_name: str
    created_ms: int


class RegistryTable(StoredTable):
    """Registries, which are projects with collections.

    Example:
        >>> metadata_store.registries.named(team_id, "model").versions
        12
    """

    def get(self, project_id: int) -> RegistryRow:
        """Return a registry, or raise NotFound."""
        with self._database.read() as connection:
            return _get(connection, project_id)

    def named(self, entity_id: int | None, name: str) -> RegistryRow | None:
        """A registry of a team or user; None if there is none of this name."""
        statement = _registries().where(
            project.c.entity_id.is_not_distinct_from(entity_id), project.c.name == project_of_registry(name)
        )
        with self._database.read() as connection:
            return next(map(_row, connection.execute(statement)), None)

    def of_entity(self, entity_id: int | None) -> list[RegistryRow]:
        """The registries of a team or user, by name; None: those of a server without accounts."""
        statement = _registries().where(project.c.entity_id.is_not_distinct_from(entity_id))
        with self._database.read() as connection:
            return [_row(row) for row in connection.execute(statement.order_by(project.c.name))]

    def page(
        self,
        project_ids: Iterable[int] | None,
        entity_id: int | None,
        text: str,
        skip: int,
        limit: int,
        sort: str = "name",
    ) -> tuple[list[RegistryRow], int]:
        """A page of registries, and how many there are.

        Args:
            project_ids: only these; None: all.
            entity_id: only of this team or user; None: of all.
            text: part of the name or description.
            sort: one of `SORTS`.
        """
        with self._database.read() as connection:
            statement = _registries()
            if project_ids is not None:
                statement = statement.where(among(connection, project.c.id, project_ids))
            if entity_id is not None:
                statement = statement.where(project.c.entity_id == entity_id)
            if text:
                words = func.lower(project.c.name + " " + project.c.description)
                statement = statement.where(words.contains(text.lower(), autoescape=True))
            total = connection.execute(select(func.count()).select_from(statement.subquery())).scalar_one()
            key = statement.selected_columns[sort.lstrip("-")]
            ordered = statement.order_by(key.desc() if sort.startswith("-") else key.asc(), project.c.id)
            rows = connection.execute(ordered.offset(skip).limit(limit))
            return [_row(row) for row in rows], int(total)

    @in_transaction
    def create(
        self,
        connection: Connection,
        owner: ProjectOwner,
        name: str,
        description: str,
        now_ms: int,
        by: Changer,
        types: Sequence[str] = (),
    ) -> RegistryRow:
        """Create an empty registry.

        Args:
            types: of the artifacts that can be linked; none: all.

        Raises:
            ValueError: an invalid name, description or type.
            NameTaken: the team or user has a registry of this name.
        """
        key = owner.entity_id, PREFIX + checked_registry_name(name)
        text, checked = checked_description(description), checked_types(types)
        take_turns(connection, "registry", owner.entity_id or 0)
        if find_projects(connection, [key]):
            raise NameTaken(f"there is a registry {name!r} already")
        project_id = ensure_projects(connection, [(key[1], owner)], now_ms)[key]
        same = project.c.id == project_id
        connection.execute(update(project).where(same).values(description=text))
        set_types(connection, project_id, checked)
        after = {"visibility": owner.visibility or "team"}
        record_registry(connection, project_id, "registry.create", now_ms, by, after=after)
        return _get(connection, project_id)

    @in_transaction
    def change(
        self,
        connection: Connection,
        project_id: int,
        now_ms: int,
        by: Changer,
        name: str | None = None,
        description: str | None = None,
        visibility: str | None = None,
        types: Sequence[str] | None = None,
    ) -> RegistryRow:
        """Change a registry. None: unchanged.

        Args:
            types: of the artifacts that can be linked; none: all. What is linked stays.

        Raises:
            ValueError: an invalid name, description or type.
            NameTaken: its owner has another registry of this name.
        """
        values: dict[str, Any] = {}
        if name is not None:
            values["name"] = PREFIX + checked_registry_name(name)
        if description is not None:
            values["description"] = checked_description(description)
        if visibility is not None:
            values["visibility"] = visibility
        checked = None if types is None else checked_types(types)
        before = _rules(connection, project_id)
        same = update(project).where(project.c.id == project_id)
        try:
            with connection.begin_nested():
                connection.execute(same.values(values or {"id": project_id}))
        except IntegrityError:
            raise NameTaken(f"there is a registry {name!r} already") from None
        if checked is not None:
            set_types(connection, project_id, checked)
        after = _rules(connection, project_id)
        if before != after:
            rights_changed(connection)
            about: Any = {"before": before, "after": after}
            record_registry(connection, project_id, "registry.update", now_ms, by, **about)
        return _get(connection, project_id)

    def types(self, project_id: int) -> list[str]:
        """The types of artifacts that can be linked to a registry; none: all."""
        with self._database.read() as connection:
            return _types(connection, project_id)

    @in_transaction
    def delete(self, connection: Connection, project_id: int, now_ms: int, by: Changer) -> None:
        """Delete a registry with its collections; the versions stay in their projects.

        Raises:
            NotFound: there is none.
            ProtectedAlias: a version has an alias that `by` may not change.
        """
        row = _get(connection, project_id)
        theirs = select(artifact_collection.c.id).where(artifact_collection.c.project_id == project_id)
        check_members(connection, artifact_membership.c.collection_id.in_(theirs), by)
        before = {"collections": row.collections, "versions": row.versions}
        record_registry(connection, project_id, "registry.delete", now_ms, by, before=before)
        same = project.c.id == project_id
        connection.execute(delete(artifact_collection).where(artifact_collection.c.project_id == project_id))
        try:
            with connection.begin_nested():
                connection.execute(delete(project).where(same))
        except IntegrityError:  # it has runs, from before it was a registry: they are kept
            connection.execute(update(project).where(same).values(deleted_ms=now_ms))
        rights_changed(connection)

    # Administrators

    def admins(self, project_id: int) -> list[RegistryAdmin]:
        """The administrators of a registry, by name."""
        statement = (
            select(user_account.c.id, entity.c.name, user_account.c.display_name, registry_admin.c.created_ms)
            .join(user_account, user_account.c.id == registry_admin.c.user_id)
            .join(entity, entity.c.id == user_account.c.entity_id)
            .where(registry_admin.c.project_id == project_id)
            .order_by(entity.c.name)
        )
        with self._database.read() as connection:
            return [RegistryAdmin(*row) for row in connection.execute(statement)]

    @in_transaction
    def add_admin(
        self, connection: Connection, project_id: int, user_id: int, name: str, now_ms: int, by: Changer
    ) -> bool:
        """Make a user an administrator; returns whether they were none.

        Raises:
            LimitReached: the registry has too many.
        """
        columns = registry_admin.c
        take_turns(connection, "registry_admin", project_id)
        admin_ids = set(
            connection.execute(select(columns.user_id).where(columns.project_id == project_id)).scalars()
        )
        if user_id in admin_ids:
            return False
        if len(admin_ids) >= MAX_ADMINS:
            raise LimitReached(f"the registry has {MAX_ADMINS} administrators: remove one first")
        row = {"project_id": project_id, "user_id": user_id, "created_ms": now_ms}
        add_rows(connection, registry_admin, [row])
        rights_changed(connection)
        record_registry(connection, project_id, "registry.admin_add", now_ms, by, after={"user": name})
        return True

    @in_transaction
    def remove_admin(
        self, connection: Connection, project_id: int, name: str, now_ms: int, by: Changer
    ) -> None:
        """Take a user the administration of a registry.

        Raises:
            NotFound: the user does not administer it.
        """
        user_ids = (
            select(user_account.c.id)
            .join(entity, entity.c.id == user_account.c.entity_id)
            .where(entity.c.name == name)
        )
        columns = registry_admin.c
        same = (columns.project_id == project_id, columns.user_id.in_(user_ids))
        if not connection.execute(delete(registry_admin).where(*same)).rowcount:
            raise NotFound(f"{name!r} does not administer the registry")
        rights_changed(connection)
        before = {"user": name}
        record_registry(connection, project_id, "registry.admin_remove", now_ms, by, before=before)

    # Protected aliases

    def protected(self, project_id: int) -> list[str]:
        """The protected aliases of a registry."""
        columns = protected_alias.c
        statement = select(columns.alias).where(columns.project_id == project_id).order_by(columns.alias)
        with self._database.read() as connection:
            return list(connection.execute(statement).scalars())

    def admin_names(self, project_id: int) -> list[str]:
        """The names of the administrators of a registry."""
        with self._database.read() as connection:
            return admin_names(connection, project_id)

    @in_transaction
    def protect(self, connection: Connection, project_id: int, alias: str, now_ms: int, by: Changer) -> None:
        """Protect an alias in all collections; versions that have it keep it.

        Raises:
            ValueError: an invalid alias, or `latest`, which moves with each link.
            LimitReached: the registry has too many.
        """
        checked = checked_alias(alias)
        if checked == LATEST:
            raise ValueError("the alias 'latest' moves with each link, so it cannot be protected")
        columns = protected_alias.c
        take_turns(connection, "protected_alias", project_id)
        aliases = list(
            connection.execute(select(columns.alias).where(columns.project_id == project_id)).scalars()
        )
        if checked in aliases:
            return
        if len(aliases) >= MAX_PROTECTED:
            raise LimitReached(f"the registry has {MAX_PROTECTED} protected aliases: remove one first")
        row = {"project_id": project_id, "alias": checked, "created_ms": now_ms}
        connection.execute(insert(protected_alias).values(row))
        record_registry(connection, project_id, "registry.protect", now_ms, by, after={"alias": checked})

    @in_transaction
    def unprotect(
        self, connection: Connection, project_id: int, alias: str, now_ms: int, by: Changer
    ) -> None:
        """Let everybody who may link set an alias again.

        Raises:
            NotFound: it is not protected.
        """
        columns = protected_alias.c
        same = (columns.project_id == project_id, columns.alias == alias)
        if not connection.execute(delete(protected_alias).where(*same)).rowcount:
            raise NotFound(f"the alias {alias!r} is not protected")
        record_registry(connection, project_id, "registry.unprotect", now_ms, by, before={"alias": alias})


def checked_types(types: Sequence[str]) -> list[str]:
    """Return types of artifacts without duplicates, by name; raise ValueError for one that cannot be."""
    return sorted({checked_label("type of artifacts", type) for type in types})


def _rules(connection: Connection, project_id: int) -> dict[str, Any]:
    """Return the name, the readers and the types of a registry, for the audit log."""
    row = _get(connection, project_id)
    return {"name": row.name, "visibility": row.visibility, "types": _types(connection, project_id)}


def _types(connection: Connection, project_id: int) -> list[str]:
    columns = registry_type.c
    statement = select(columns.type).where(columns.project_id == project_id).order_by(columns.type)
    return list(connection.execute(statement).scalars())


def set_types(connection: Connection, project_id: int, types: Sequence[str]) -> None:
    """Let only artifacts of some types be linked to a registry; none: of all."""
    connection.execute(delete(registry_type).where(registry_type.c.project_id == project_id))
    add_rows(connection, registry_type, [{"project_id": project_id, "type": type} for type in types])


def _registries() -> Select[Any]:
    collections = (
        select(func.count())
        .where(artifact_collection.c.project_id == project.c.id)
        .correlate(project)
        .scalar_subquery()
    )
    versions = (
        select(func.count())
        .select_from(artifact_membership)
        .join(artifact_collection, artifact_collection.c.id == artifact_membership.c.collection_id)
        .where(artifact_collection.c.project_id == project.c.id)
        .correlate(project)
        .scalar_subquery()
    )
    changed = (
        select(func.max(artifact_collection.c.updated_ms))
        .where(artifact_collection.c.project_id == project.c.id)
        .correlate(project)
        .scalar_subquery()
    )
    columns = (project.c[name] for name in ("id", "entity_id", "name", "description", "created_ms"))
    return (
        select(
            *columns,
            entity.c.name.label("entity"),
            func.coalesce(project.c.visibility, "team").label("visibility"),
            collections.label("collections"),
            versions.label("versions"),
            func.coalesce(changed, project.c.created_ms).label("changed_ms"),
        )
        .outerjoin(entity, entity.c.id == project.c.entity_id)
        .where(project.c.name.startswith(PREFIX, autoescape=True), project.c.deleted_ms.is_(None))
    )


def _get(connection: Connection, project_id: int) -> RegistryRow:
    row = connection.execute(_registries().where(project.c.id == project_id)).first()
    if row is None:
        raise NotFound("there is no such registry")
    return _row(row)


def _row(row: Any) -> RegistryRow:
    narrow = "restricted" if row.entity == ORGANISATION else "team"
    visibility = "organisation" if row.visibility in _SHARED else narrow
    values = {**row._asdict(), "name": registry_name(row.name), "visibility": visibility}
    return RegistryRow(**values)


def record_registry(
    connection: Connection, project_id: int, action: str, now_ms: int, by: Changer, **about: Any
) -> None:
    """Record a change of a registry in the audit log, if somebody owns it."""
    row = _get(connection, project_id)
    if by.actor is not None and row.entity_id is not None and row.entity is not None:
        owner_fields: Any = {"entity": (row.entity_id, row.entity), "project": PREFIX + row.name}
        record(connection, now_ms, by.actor, action, target=row.name, **owner_fields, **about)
