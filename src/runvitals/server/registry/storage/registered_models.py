"""Registered models and their versions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from runvitals.server.database.database import Database
from runvitals.server.database.stored_json import stored_object
from runvitals.server.database.tables.registry import model_version, registered_model
from runvitals.store.errors import NameTaken


@dataclass(frozen=True, slots=True)
class RegisteredModel:
    """A registered model. Times are ms UTC.

    Args:
        entity_id: whose registry it is in; None on a server without accounts.
        aliases: alias → number of a version.
    """

    id: int
    entity_id: int | None
    name: str
    description: str | None
    tags: Mapping[str, str]
    aliases: Mapping[str, int]
    created_ms: int
    changed_ms: int


@dataclass(frozen=True, slots=True)
class ModelVersion:
    """A version of a registered model.

    Args:
        source: where its files are, as the client named it; `location`: as it can be downloaded.
        run_uid: the run that made it.
        logged_model: the model that a training logged, by its id.
    """

    version: int
    description: str | None
    stage: str
    source: str
    location: str
    run_uid: str | None
    run_link: str | None
    logged_model: str | None
    tags: Mapping[str, str]
    created_ms: int
    changed_ms: int


class RegisteredModelTable:
    """The tables of registered models and their versions.

    Example:
        >>> models = metadata_store.registered_models
        >>> model_id = models.create(None, "digits", None, {}, now_ms)
        >>> models.named("digits")[0].id == model_id
        True
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def named(self, name: str) -> list[RegisteredModel]:
        """The models of this name, one for each entity at most."""
        statement = select(registered_model).where(registered_model.c.name == name)
        with self._database.read() as connection:
            return [_model(row) for row in connection.execute(statement.order_by(registered_model.c.id))]

    def of_entity(self, entity_id: int | None) -> list[RegisteredModel]:
        """The models in the registry of an entity, by name."""
        statement = select(registered_model).where(
            registered_model.c.entity_id.is_not_distinct_from(entity_id)
        )
        with self._database.read() as connection:
            return [_model(row) for row in connection.execute(statement.order_by(registered_model.c.name))]

    def create(
        self, entity_id: int | None, name: str, description: str | None, tags: Mapping[str, str], now_ms: int
    ) -> int:
        """Register a model; returns its id.

        Raises:
            NameTaken: the entity has one of this name.
        """
        values = {
            "entity_id": entity_id,
            "name": name,
            "description": description,
            "tags": json.dumps(dict(tags)),
            "aliases": "{}",
            "last_version": 0,
            "created_ms": now_ms,
            "changed_ms": now_ms,
        }
        statement = insert(registered_model).values(values).returning(registered_model.c.id)

        def work(connection: Connection) -> int:
            try:
                return int(connection.execute(statement).scalar_one())
            except IntegrityError:
                raise NameTaken(f"the registered model {name!r} already exists") from None

        return self._database.write(work)

    def change(self, model_id: int, now_ms: int, **values: str | None) -> None:
        """Set the `name` or `description` of a model.

        Raises:
            NameTaken: the entity has another one of this name.
        """
        of_model = registered_model.c.id == model_id

        def work(connection: Connection) -> None:
            try:
                connection.execute(
                    update(registered_model).where(of_model).values(**values, changed_ms=now_ms)
                )
            except IntegrityError:
                raise NameTaken(f"the registered model {values.get('name')!r} already exists") from None
            if "name" in values:
                versions = model_version.c.model_id == model_id
                connection.execute(update(model_version).where(versions).values(changed_ms=now_ms))

        self._database.write(work)

    def delete(self, model_id: int) -> None:
        """Delete a model with its versions."""
        statement = delete(registered_model).where(registered_model.c.id == model_id)
        self._database.write(lambda connection: connection.execute(statement))

    def change_tags(self, model_id: int, tags: Mapping[str, str | None]) -> None:
        """Set tags of a model; None removes one."""
        self._change_json(model_id, "tags", lambda before: _merge(before, tags))

    def change_aliases(self, model_id: int, aliases: Mapping[str, int | None]) -> None:
        """Let aliases name versions; None removes one."""
        self._change_json(model_id, "aliases", lambda before: _merge(before, aliases))

    def _change_json(self, model_id: int, column: str, change: Callable[[dict[str, Any]], Any]) -> None:
        of_model = registered_model.c.id == model_id

        def work(connection: Connection) -> None:
            statement = select(registered_model.c[column]).where(of_model).with_for_update()
            encoded = connection.execute(statement).scalar()
            if encoded is not None:
                changed = json.dumps(change(json.loads(encoded)))
                connection.execute(update(registered_model).where(of_model).values({column: changed}))

        self._database.write(work)

    # Versions

    def versions(self, model_id: int) -> list[ModelVersion]:
        """The versions of a model, in ascending order."""
        statement = select(model_version).where(model_version.c.model_id == model_id)
        with self._database.read() as connection:
            rows = connection.execute(statement.order_by(model_version.c.version))
            return [_version(row) for row in rows]

    def add_version(self, model_id: int, version: ModelVersion) -> ModelVersion:
        """Add a version to a model; returns it with its number, which no version of the model has had."""
        of_model = registered_model.c.id == model_id
        following = registered_model.c.last_version + 1
        statement = update(registered_model).where(of_model).values(last_version=following)

        def work(connection: Connection) -> ModelVersion:
            numbered = statement.values(changed_ms=version.created_ms).returning(
                registered_model.c.last_version
            )
            number = int(connection.execute(numbered).scalar_one())
            added = replace(version, version=number)
            row = {column.name: getattr(added, column.name, model_id) for column in model_version.columns}
            connection.execute(insert(model_version).values({**row, "tags": json.dumps(dict(version.tags))}))
            return added

        return self._database.write(work)

    def change_version(
        self, model_id: int, version: int, now_ms: int, archived: str | None = None, **values: str | None
    ) -> None:
        """Set the `description` or `stage` of a version.

        Args:
            archived: other versions in the same stage get this one.
        """
        this = (model_version.c.model_id == model_id, model_version.c.version == version)
        others = (model_version.c.model_id == model_id, model_version.c.version != version)

        def work(connection: Connection) -> None:
            if archived is not None:
                in_stage = (*others, model_version.c.stage == values["stage"])
                connection.execute(
                    update(model_version).where(*in_stage).values(stage=archived, changed_ms=now_ms)
                )
            connection.execute(update(model_version).where(*this).values(**values, changed_ms=now_ms))
            if "stage" in values:
                of_model = registered_model.c.id == model_id
                connection.execute(update(registered_model).where(of_model).values(changed_ms=now_ms))

        self._database.write(work)

    def change_version_tags(self, model_id: int, version: int, tags: Mapping[str, str | None]) -> None:
        """Set tags of a version; None removes one."""
        this = (model_version.c.model_id == model_id, model_version.c.version == version)

        def work(connection: Connection) -> None:
            encoded = connection.execute(select(model_version.c.tags).where(*this).with_for_update()).scalar()
            if encoded is not None:
                changed = json.dumps(_merge(json.loads(encoded), tags))
                connection.execute(update(model_version).where(*this).values(tags=changed))

        self._database.write(work)

    def delete_version(self, model_id: int, version: int, now_ms: int) -> None:
        """Delete a version, and the aliases that name it."""
        this = (model_version.c.model_id == model_id, model_version.c.version == version)
        of_model = registered_model.c.id == model_id

        def work(connection: Connection) -> None:
            statement = select(registered_model.c.aliases).where(of_model).with_for_update()
            aliases = json.loads(connection.execute(statement).scalar() or "{}")
            kept = {alias: number for alias, number in aliases.items() if number != version}
            changed = {"aliases": json.dumps(kept), "changed_ms": now_ms}
            connection.execute(update(registered_model).where(of_model).values(changed))
            connection.execute(delete(model_version).where(*this))

        self._database.write(work)


def _merge(before: dict[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in {**before, **changed}.items() if value is not None}


def _model(row: Any) -> RegisteredModel:
    return RegisteredModel(
        row.id,
        row.entity_id,
        row.name,
        row.description,
        stored_object(row.tags, f"the tags of registered model {row.id}"),
        json.loads(row.aliases),
        row.created_ms,
        row.changed_ms,
    )


def _version(row: Any) -> ModelVersion:
    return ModelVersion(
        row.version,
        row.description,
        row.stage,
        row.source,
        row.location,
        row.run_uid,
        row.run_link,
        row.logged_model,
        stored_object(row.tags, f"the tags of a version of registered model {row.model_id}"),
        row.created_ms,
        row.changed_ms,
    )
