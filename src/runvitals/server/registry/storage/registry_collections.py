"""Collections of a registry in a list: with what their versions have together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, func, or_, select

from runvitals.server.artifacts.storage.reading import collections_query, read_collections
from runvitals.server.artifacts.storage.rows import Collection
from runvitals.server.database.database import Database, among
from runvitals.server.database.tables.accounts import entity, user_account
from runvitals.server.database.tables.artifacts import (
    artifact_alias,
    artifact_collection,
    artifact_membership,
)
from runvitals.server.database.tables.registry import model_version, registered_model
from runvitals.server.runs.storage.run_fields import values_of

SORTS: Final = ("name", "-name", "created_ms", "-created_ms", "updated_ms", "-updated_ms")


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


class RegistryCollectionTable:
    """The collections of registries in lists."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def page(
        self, project_id: int, text: str, sort: str, skip: int, limit: int
    ) -> tuple[list[RegistryCollection], int]:
        """A page of the collections of a registry, and how many there are.

        Args:
            text: part of the name, type or description.
            sort: one of `SORTS`.
        """
        columns = artifact_collection.c
        statement = collections_query().where(columns.project_id == project_id, columns.kind == "portfolio")
        if text:
            part = text.lower()
            texts = (columns.name, columns.type, columns.description, columns.tags)
            statement = statement.where(
                or_(*(func.lower(column).contains(part, autoescape=True) for column in texts))
            )
        key = columns[sort.lstrip("-")]
        ordered = statement.order_by(key.desc() if sort.startswith("-") else key.asc(), columns.id)
        with self._database.read() as connection:
            total = connection.execute(select(func.count()).select_from(statement.subquery())).scalar_one()
            rows = read_collections(connection, ordered.offset(skip).limit(limit))
            return _with_versions(connection, rows), int(total)

    def one(self, collection: Collection) -> RegistryCollection:
        """A collection with what its versions have together."""
        with self._database.read() as connection:
            return _with_versions(connection, [collection])[0]

    def field_values(self, run_ids: Sequence[int], names: Sequence[str]) -> dict[int, dict[str, str | float]]:
        """The values of fields such as `summary.loss` of runs, by run and name."""
        with self._database.read() as connection:
            return dict(values_of(connection, run_ids, names))


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
    linked: Any = (
        select(artifact_membership.c.collection_id, model_version.c.author)
        .join(model_version, model_version.c.membership_id == artifact_membership.c.id)
        .where(artifact_membership.c.id.in_(first), model_version.c.author != "")
    )
    owners: dict[int, str] = dict(connection.execute(linked).all())
    made: Any = (
        select(registered_model.c.collection_id, entity.c.name)
        .join(user_account, user_account.c.id == registered_model.c.author_id)
        .join(entity, entity.c.id == user_account.c.entity_id)
        .where(among(connection, registered_model.c.collection_id, ids))
    )
    return owners | dict(connection.execute(made).all())
