"""Selects collections and versions: what the repositories of artifacts share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Select, bindparam, func, select

from runvitals.model.artifact_names import is_version
from runvitals.model.names import plain_text
from runvitals.server.artifacts.storage.rows import Collection, CollectionVersion, UnknownArtifact, Version
from runvitals.server.database.database import among
from runvitals.server.database.stored_json import stored_list, stored_object
from runvitals.server.database.tables.accounts import entity
from runvitals.server.database.tables.artifacts import (
    artifact_alias,
    artifact_collection,
    artifact_membership,
    artifact_version,
)
from runvitals.server.database.tables.runs import project

_INT32: Final = 1 << 31
_VERSIONS = (
    select(func.count())
    .where(artifact_membership.c.collection_id == artifact_collection.c.id)
    .correlate(artifact_collection)
    .scalar_subquery()
)
_COLLECTION = (
    *(artifact_collection.c[name] for name in ("id", "project_id", "kind", "name", "type", "description")),
    *(artifact_collection.c[name] for name in ("tags", "created_ms", "updated_ms", "ttl_s")),
    project.c.name.label("project"),
    entity.c.name.label("entity"),
    _VERSIONS.label("versions"),
)

_OWNER: Final = artifact_collection.alias("owner")
_OWN_PROJECT: Final = project.alias("own_project")
# Made once: that takes as long as to carry them out. Neither project may be in the trash.
_VERSION_ID: Final = (
    select(artifact_membership.c.version_id)
    .join(artifact_collection, artifact_collection.c.id == artifact_membership.c.collection_id)
    .join(project, project.c.id == artifact_collection.c.project_id)
    .join(artifact_version, artifact_version.c.id == artifact_membership.c.version_id)
    .join(_OWNER, _OWNER.c.id == artifact_version.c.collection_id)
    .join(_OWN_PROJECT, _OWN_PROJECT.c.id == _OWNER.c.project_id)
    .where(
        artifact_collection.c.project_id == bindparam("project"),
        artifact_collection.c.name == bindparam("name"),
        project.c.deleted_ms.is_(None),
        _OWN_PROJECT.c.deleted_ms.is_(None),
    )
)
_WITH_NUMBER: Final = _VERSION_ID.where(artifact_membership.c.number == bindparam("number"))
_WITH_ALIAS: Final = _VERSION_ID.join(
    artifact_alias, artifact_alias.c.membership_id == artifact_membership.c.id
).where(artifact_alias.c.alias == bindparam("alias"))


def collections_query() -> Select[Any]:
    """All collections of projects that are not in the trash."""
    return (
        select(*_COLLECTION)
        .join(project, project.c.id == artifact_collection.c.project_id)
        .outerjoin(entity, entity.c.id == project.c.entity_id)
        .where(project.c.deleted_ms.is_(None))
    )


def read_collections(connection: Connection, statement: Select[Any]) -> list[Collection]:
    """The result of `collections_query` with further conditions."""
    return [
        Collection(**{**row, "tags": tuple(stored_list(row["tags"], f"the tags of collection {row['id']}"))})
        for row in connection.execute(statement).mappings()
    ]


def read_versions(connection: Connection, ids: Iterable[int]) -> dict[int, Version]:
    """The existing ones of some versions."""
    statement = select(artifact_version).where(among(connection, artifact_version.c.id, ids))
    rows = connection.execute(statement).all()
    collection_ids = {row.collection_id for row in rows}
    collections = {
        collection.id: collection
        for collection in read_collections(
            connection, collections_query().where(among(connection, artifact_collection.c.id, collection_ids))
        )
    }
    return {
        row.id: _version(row, collections[row.collection_id])
        for row in rows
        if row.collection_id in collections
    }


def read_version(connection: Connection, version_id: int) -> Version:
    """Return a version, or raise UnknownArtifact."""
    version = read_versions(connection, [version_id]).get(version_id)
    if version is None:
        raise UnknownArtifact(f"there is no artifact {version_id}")
    return version


def _version(row: Any, collection: Collection) -> Version:
    return Version(
        row.id,
        collection,
        row.version,
        row.state,
        row.digest,
        row.manifest_kind,
        row.base_id,
        row.description,
        stored_object(row.metadata, f"the metadata of artifact {row.id}"),
        tuple(stored_list(row.tags, f"the tags of artifact {row.id}")),
        row.ttl_s,
        row.history_step,
        row.run_id,
        row.author_id,
        row.client_id,
        row.bytes,
        max(row.files, 0),
        row.created_ms,
        row.updated_ms,
    )


def read_memberships(connection: Connection, statement: Select[Any]) -> list[CollectionVersion]:
    """The memberships of a query for rows of `artifact_membership`, in its order."""
    rows = connection.execute(statement).all()
    versions = read_versions(connection, {row.version_id for row in rows})
    collection_ids = {row.collection_id for row in rows}
    collections = {
        collection.id: collection
        for collection in read_collections(
            connection, collections_query().where(among(connection, artifact_collection.c.id, collection_ids))
        )
    }
    aliases = _aliases(connection, [row.id for row in rows])
    return [
        CollectionVersion(
            row.id,
            collections[row.collection_id],
            row.number,
            row.created_ms,
            versions[row.version_id],
            tuple(aliases.get(row.id, ())),
        )
        for row in rows
        if row.version_id in versions and row.collection_id in collections
    ]


def read_version_id(connection: Connection, project_id: int, name: str, alias: str) -> int | None:
    """The id of the version of a collection with this alias or number; None if there is none."""
    parameters: dict[str, Any] = {"project": project_id, "name": plain_text(name)}
    if not is_version(alias):
        return connection.execute(_WITH_ALIAS, {**parameters, "alias": plain_text(alias)}).scalar()
    number = int(alias[1:19])
    if number >= _INT32:
        return None
    return connection.execute(_WITH_NUMBER, {**parameters, "number": number}).scalar()


def _aliases(connection: Connection, memberships: Sequence[int]) -> dict[int, list[str]]:
    statement = (
        select(artifact_alias.c.membership_id, artifact_alias.c.alias)
        .where(among(connection, artifact_alias.c.membership_id, memberships))
        .order_by(artifact_alias.c.alias)
    )
    aliases: dict[int, list[str]] = {}
    for membership_id, alias in connection.execute(statement):
        aliases.setdefault(membership_id, []).append(alias)
    return aliases
