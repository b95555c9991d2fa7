"""Collections of registries as MLflow's clients know them: registered models, and their versions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Select, select, update
from sqlalchemy.exc import IntegrityError

from runvitals.model.artifact_names import LATEST, checked_aliases, checked_label
from runvitals.model.artifacts import UnknownArtifact
from runvitals.model.hidden_characters import without_hidden_characters
from runvitals.model.registry_names import MODELS, PREFIX, project_of_registry, registry_name
from runvitals.server.artifacts.storage.collections import CollectionTable, check_collections
from runvitals.server.artifacts.storage.protection import Changer
from runvitals.server.database.database import Database, add_rows, among
from runvitals.server.database.stored_json import stored_list, stored_object
from runvitals.server.database.tables.artifacts import (
    artifact_alias,
    artifact_collection,
    artifact_membership,
)
from runvitals.server.database.tables.registry import registered_model
from runvitals.server.database.tables.runs import project
from runvitals.server.projects.storage.projects import ProjectOwner, ensure_projects
from runvitals.store.errors import NameTaken

_NAME: Final = "name of a registered model"
_MODEL: Final = "model"
"""The type of the collections that MLflow's clients make."""
_FIRST: Final = 1
"""The number of the first version in these."""


@dataclass(frozen=True, slots=True)
class RegisteredModel:
    """A collection of a registry. Times are ms UTC.

    Args:
        id: of the collection.
        project_id: the registry.
        entity_id: whose registry it is in; None on a server without accounts.
        name: as MLflow's clients name it: with that of the registry before a dot, unless that is `model`.
        tags: those with a value, and with an empty value those that are only names.
        aliases: alias → number of a version; without `latest`, which MLflow's clients do not know.
    """

    id: int
    project_id: int
    entity_id: int | None
    name: str
    description: str | None
    tags: Mapping[str, str]
    aliases: Mapping[str, int]
    created_ms: int
    changed_ms: int


class RegisteredModelTable:
    """The collections of registries, for MLflow's clients.

    Example:
        >>> models = metadata_store.registered_models
        >>> model_id = models.create(owner, "digits", None, {}, now_ms, by)
        >>> models.named("digits")[0].id == model_id
        True
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._collections = CollectionTable(database)

    def named(self, name: str) -> list[RegisteredModel]:
        """The models of this name, one for each entity at most."""
        names = [(MODELS, name)]
        names += [
            (name[:position], name[position + 1 :]) for position, letter in enumerate(name) if letter == "."
        ]
        by_entity: dict[int | None, RegisteredModel] = {}
        with self._database.read() as connection:
            for registry, collection in names:
                statement = _models().where(
                    project.c.name == project_of_registry(registry), artifact_collection.c.name == collection
                )
                for model in _read(connection, statement):
                    by_entity.setdefault(model.entity_id, model)
        return list(by_entity.values())

    def of_entity(self, entity_id: int | None) -> list[RegisteredModel]:
        """The models in the registries of an entity, by name."""
        with self._database.read() as connection:
            own = project.c.entity_id.is_not_distinct_from(entity_id)
            return sorted(_read(connection, _models().where(own)), key=lambda model: model.name)

    def of_collections(self, ids: Iterable[int]) -> list[RegisteredModel]:
        """Some collections of registries."""
        with self._database.read() as connection:
            return _read(connection, _models().where(among(connection, artifact_collection.c.id, ids)))

    def of_projects(self, project_ids: Iterable[int]) -> list[RegisteredModel]:
        """The models in some registries; projects that are none have no models."""
        with self._database.read() as connection:
            return _read(connection, _models().where(among(connection, project.c.id, project_ids)))

    def create(
        self,
        owner: ProjectOwner,
        name: str,
        description: str | None,
        tags: Mapping[str, str],
        now_ms: int,
        by: Changer,
    ) -> int:
        """Add an empty collection to the registry `model`, which is created if it does not exist.

        Args:
            owner: whose registry it is.

        Raises:
            NameTaken: the registry has a collection of this name.
            ValueError: no collection can have the name, or the registry has too many.
        """
        values = {
            "kind": "portfolio",
            "name": without_hidden_characters(_NAME, checked_label(_NAME, name)),
            "type": _MODEL,
            "description": description or "",
            "tags": "[]",
            "next_version": _FIRST,
            "created_ms": now_ms,
            "updated_ms": now_ms,
        }
        key = (owner.entity_id, PREFIX + MODELS)

        def work(connection: Connection) -> int:
            project_id = ensure_projects(connection, [(key[1], owner)], now_ms)[key]
            check_collections(connection, project_id)
            added = artifact_collection.insert().values({**values, "project_id": project_id})
            try:
                number = int(connection.execute(added.returning(artifact_collection.c.id)).scalar_one())
            except IntegrityError:
                raise NameTaken(f"the registered model {name!r} already exists") from None
            author_id = None if by.actor is None else by.actor.user_id
            row = {"collection_id": number, "author_id": author_id, "properties": json.dumps(dict(tags))}
            connection.execute(registered_model.insert().values(row))
            return number

        return self._database.write(work)

    def describe(self, model: RegisteredModel, description: str | None, now_ms: int) -> None:
        """Set the description of a model."""
        self._collections.change(model.id, now_ms, description=description or "")

    def rename(self, model: RegisteredModel, name: str, now_ms: int) -> None:
        """Give a model another name in its registry.

        Raises:
            NameTaken: the registry has another one of this name.
            UnknownArtifact: it was deleted or renamed since it was read.
            ValueError: no collection can have the name.
        """
        same = artifact_collection.c.id == model.id

        def work() -> None:
            with self._database.read() as connection:
                connection.execute(select(artifact_collection.c.id).where(same).with_for_update())
                names = [stored.name for stored in _read(connection, _models().where(same))]
            if names != [model.name]:
                raise UnknownArtifact(f"the registered model {model.name!r} was renamed or deleted")
            self._collections.change(model.id, now_ms, name=name)

        self._database.in_one_transaction(work)

    def delete(self, model_id: int, now_ms: int, by: Changer) -> None:
        """Delete a collection; the versions that only it has, too.

        Raises:
            ProtectedAlias: a version has an alias that `by` may not change.
        """
        self._collections.delete(model_id, now_ms, by)

    def change_tags(self, model_id: int, tags: Mapping[str, str | None]) -> None:
        """Set tags of a model; None removes one."""
        same = registered_model.c.collection_id == model_id
        names = artifact_collection.c.id == model_id

        def work(connection: Connection) -> None:
            listed = connection.execute(
                select(artifact_collection.c.tags).where(names).with_for_update()
            ).scalar()
            if listed is None:
                return
            empty = {"collection_id": model_id, "author_id": None, "properties": "{}"}
            add_rows(connection, registered_model, [empty])
            encoded = connection.execute(select(registered_model.c.properties).where(same)).scalar_one()
            changed = json.dumps(merged(json.loads(encoded), tags))
            connection.execute(update(registered_model).where(same).values(properties=changed))
            kept = json.dumps([name for name in json.loads(listed) if name not in tags])
            connection.execute(update(artifact_collection).where(names).values(tags=kept))

        self._database.write(work)

    def set_alias(self, model_id: int, alias: str, version_id: int, now_ms: int, by: Changer) -> None:
        """Let an alias name a version.

        Raises:
            ValueError: an invalid alias.
            ProtectedAlias: an alias that `by` may not change.
        """
        self._collections.add_aliases(model_id, version_id, checked_aliases([alias]), now_ms, by)

    def delete_alias(self, model_id: int, alias: str, now_ms: int, by: Changer) -> None:
        """Remove an alias; without effect if no version has it.

        Raises:
            ProtectedAlias: an alias that `by` may not change.
        """
        member = self._collections.member_of(model_id, alias)
        if member is not None and alias in member.aliases:
            self._collections.remove_aliases(model_id, member.version.id, [alias], now_ms, by)


def merged(before: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    """Return tags with changes; None removes one."""
    return {key: value for key, value in {**before, **changed}.items() if value is not None}


def _models() -> Select[Any]:
    columns = ("id", "project_id", "name", "description", "tags", "created_ms", "updated_ms")
    return (
        select(
            *(artifact_collection.c[name] for name in columns),
            project.c.name.label("project"),
            project.c.entity_id,
            registered_model.c.properties,
        )
        .join(project, project.c.id == artifact_collection.c.project_id)
        .outerjoin(registered_model, registered_model.c.collection_id == artifact_collection.c.id)
        .where(
            project.c.deleted_ms.is_(None),
            project.c.name.startswith(PREFIX, autoescape=True),
            artifact_collection.c.kind == "portfolio",
        )
        .order_by(artifact_collection.c.id)
    )


def _read(connection: Connection, statement: Select[Any]) -> list[RegisteredModel]:
    rows = connection.execute(statement).all()
    columns = artifact_alias.c
    query = (
        select(columns.collection_id, columns.alias, artifact_membership.c.number)
        .join(artifact_membership, artifact_membership.c.id == columns.membership_id)
        .where(among(connection, columns.collection_id, [row.id for row in rows]), columns.alias != LATEST)
        .order_by(columns.alias)
    )
    aliases: dict[int, dict[str, int]] = {}
    for collection_id, alias, number in connection.execute(query):
        aliases.setdefault(collection_id, {})[alias] = number
    return [_model(row, aliases.get(row.id, {})) for row in rows]


def _model(row: Any, aliases: Mapping[str, int]) -> RegisteredModel:
    registry, what = registry_name(row.project), f"the tags of collection {row.id}"
    names = dict.fromkeys(stored_list(row.tags, what), "")
    return RegisteredModel(
        row.id,
        row.project_id,
        row.entity_id,
        row.name if registry == MODELS else f"{registry}.{row.name}",
        row.description or None,
        names | stored_object(row.properties or "{}", what),
        aliases,
        row.created_ms,
        row.updated_ms,
    )
