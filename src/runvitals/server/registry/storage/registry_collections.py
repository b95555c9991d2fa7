"""Collections of a registry in a list: with what their versions have together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, func, or_, select

from runvitals.server.artifacts.storage.reading import (
    collections_query,
    read_collections,
    read_memberships,
)
from runvitals.server.artifacts.storage.rows import Collection, CollectionVersion
from runvitals.server.database.database import StoredTable, among
from runvitals.server.database.tables.accounts import entity, user_account
from runvitals.server.database.tables.artifacts import (
    artifact_alias,
    artifact_collection,
    artifact_membership,
    artifact_version,
)
from runvitals.server.database.tables.registry import model_version, registered_model
from runvitals.server.runs.storage.run_fields import values_of

SORTS: Final = ("name", "-name", "created_ms", "-created_ms", "updated_ms", "-updated_ms")
VERSION_SORTS: Final = ("-version", "version", "-bytes", "bytes", "-downloads", "downloads")


@dataclass(frozen=True, slots=True)
class RegistryCollection:
    """A collection with what its versions have together.

    Args:
        newest: the number of its newest version; None: it has none.
        aliases: alias → number of a version.
        owner: who made it, or else linked its first version.
        downloads: of all versions.
    """

    collection: Collection
    newest: int | None
    aliases: dict[str, int]
    owner: str | None
    downloads: int


class RegistryCollectionTable(StoredTable):
    """The collections of registries in lists."""

    def page(
        self,
        project_id: int,
        text: str,
        sort: str,
        skip: int,
        limit: int,
        *,
        tag: str | None = None,
        owner: str | None = None,
    ) -> tuple[list[RegistryCollection], int]:
        """A page of the collections of a registry, and how many there are.

        Args:
            text: part of the name, type, description or a tag.
            sort: one of `SORTS`.
            tag, owner: only those with this tag, of this owner; None: all.
        """
        columns = artifact_collection.c
        statement = collections_query().where(columns.project_id == project_id, columns.kind == "portfolio")
        if text:
            part = text.lower()
            texts = (columns.name, columns.type, columns.description, columns.tags)
            statement = statement.where(
                or_(*(func.lower(column).contains(part, autoescape=True) for column in texts))
            )
        if tag is not None:
            statement = statement.where(columns.tags.contains(json.dumps(tag), autoescape=True))
        if owner is not None:
            statement = statement.where(_owner() == owner)
        key = columns[sort.lstrip("-")]
        ordered = statement.order_by(key.desc() if sort.startswith("-") else key.asc(), columns.id)
        with self._database.read() as connection:
            total = connection.execute(select(func.count()).select_from(statement.subquery())).scalar_one()
            rows = read_collections(connection, ordered.offset(skip).limit(limit))
            return _with_versions(connection, rows), int(total)

    def versions(
        self,
        collection_id: int,
        sort: str,
        skip: int,
        limit: int,
        *,
        tag: str | None = None,
        author: str | None = None,
    ) -> tuple[list[CollectionVersion], int]:
        """A page of the versions of a collection, and how many there are.

        Args:
            sort: one of `VERSION_SORTS`.
            tag, author: only those with this tag, linked by this user; None: all.
        """
        members = artifact_membership.c
        statement = (
            select(artifact_membership)
            .join(artifact_version, artifact_version.c.id == members.version_id)
            .outerjoin(model_version, model_version.c.membership_id == members.id)
            .where(members.collection_id == collection_id)
        )
        if tag is not None:
            text = json.dumps(tag)
            has_tag = artifact_version.c.tags.contains(text, autoescape=True)
            has_property = model_version.c.properties.contains(f"{text}: ", autoescape=True)
            statement = statement.where(or_(has_tag, has_property))
        if author is not None:
            statement = statement.where(model_version.c.author == author)
        keys: dict[str, ColumnElement[Any]] = {
            "version": members.number,
            "bytes": artifact_version.c.bytes,
            "downloads": func.coalesce(model_version.c.downloads, 0),
        }
        key = keys[sort.lstrip("-")]
        ordered = statement.order_by(key.desc() if sort.startswith("-") else key.asc(), members.number.desc())
        with self._database.read() as connection:
            total = connection.execute(select(func.count()).select_from(statement.subquery())).scalar_one()
            return read_memberships(connection, ordered.offset(skip).limit(limit)), int(total)

    def one(self, collection: Collection) -> RegistryCollection:
        """A collection with what its versions have together."""
        with self._database.read() as connection:
            return _with_versions(connection, [collection])[0]

    def field_values(self, run_ids: Sequence[int], names: Sequence[str]) -> dict[int, dict[str, str | float]]:
        """The values of fields such as `summary.loss` of runs, by run and name."""
        with self._database.read() as connection:
            return dict(values_of(connection, run_ids, names))


def _owner() -> ColumnElement[Any]:
    """Who made a collection, or else linked its first version, for a condition."""
    columns = artifact_collection.c
    author = (
        select(entity.c.name)
        .join(user_account, user_account.c.entity_id == entity.c.id)
        .join(registered_model, registered_model.c.author_id == user_account.c.id)
        .where(registered_model.c.collection_id == columns.id)
    )
    first_linker = (
        select(model_version.c.author)
        .join(artifact_membership, artifact_membership.c.id == model_version.c.membership_id)
        .where(artifact_membership.c.collection_id == columns.id)
        .order_by(artifact_membership.c.id)
        .limit(1)
    )
    both = (row.correlate(artifact_collection).scalar_subquery() for row in (author, first_linker))
    return func.coalesce(*both)


def _with_versions(connection: Connection, rows: Sequence[Collection]) -> list[RegistryCollection]:
    ids = [row.id for row in rows]
    members = artifact_membership.c
    counted = (
        select(members.collection_id, func.max(members.number), func.sum(model_version.c.downloads))
        .outerjoin(model_version, model_version.c.membership_id == members.id)
        .where(among(connection, members.collection_id, ids))
        .group_by(members.collection_id)
    )
    counts = {row[0]: (row[1], int(row[2] or 0)) for row in connection.execute(counted)}
    aliases, owners = _aliases(connection, ids), _owners(connection, ids)
    return [
        RegistryCollection(
            row,
            counts.get(row.id, (None, 0))[0],
            aliases.get(row.id, {}),
            owners.get(row.id),
            counts.get(row.id, (None, 0))[1],
        )
        for row in rows
    ]


def _aliases(connection: Connection, ids: Iterable[int]) -> dict[int, dict[str, int]]:
    columns = artifact_alias.c
    statement = (
        select(columns.collection_id, columns.alias, artifact_membership.c.number)
        .join(artifact_membership, artifact_membership.c.id == columns.membership_id)
        .where(among(connection, columns.collection_id, ids))
        .order_by(columns.alias)
    )
    aliases: dict[int, dict[str, int]] = {}
    for collection_id, alias, number in connection.execute(statement):
        aliases.setdefault(collection_id, {})[alias] = number
    return aliases


def _owners(connection: Connection, ids: list[int]) -> dict[int, str]:
    first = (
        select(func.min(artifact_membership.c.id))
        .where(among(connection, artifact_membership.c.collection_id, ids))
        .group_by(artifact_membership.c.collection_id)
    )
    first_linkers: Any = (
        select(artifact_membership.c.collection_id, model_version.c.author)
        .join(model_version, model_version.c.membership_id == artifact_membership.c.id)
        .where(artifact_membership.c.id.in_(first), model_version.c.author != "")
    )
    owners: dict[int, str] = dict(connection.execute(first_linkers).all())
    authors: Any = (
        select(registered_model.c.collection_id, entity.c.name)
        .join(user_account, user_account.c.id == registered_model.c.author_id)
        .join(entity, entity.c.id == user_account.c.entity_id)
        .where(among(connection, registered_model.c.collection_id, ids))
    )
    return owners | dict(connection.execute(authors).all())
