"""The registry of models of one requester: which there are, and what may be done with them."""

from __future__ import annotations

import posixpath
import re
from typing import Annotated, Any, Final

from fastapi import Depends, HTTPException, Request

from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.principals import Operator, ServiceAccount, User
from runvitals.server.access.requester import Requester, requester_of
from runvitals.server.access.resources import Registry as RegistryResource
from runvitals.server.doors.mlflow.errors import (
    RESOURCE_ALREADY_EXISTS,
    RESOURCE_DOES_NOT_EXIST,
    MlflowError,
    invalid,
)
from runvitals.server.doors.mlflow.requests import SentMessage
from runvitals.server.registry.storage.registered_models import (
    ModelVersion,
    RegisteredModel,
    RegisteredModelTable,
)
from runvitals.server.service_parameters import access_of
from runvitals.store.errors import NameTaken, NotFound

PROMPT_TAG: Final = "mlflow.prompt.is_prompt"
"""Prompts of MLflow are registered models with this tag; searches list them only when it is named."""
MAX_NAME: Final = 256
MAX_ALIAS: Final = 255
_ALIAS: Final = re.compile(r"[\w\-]+")
_VERSION_ALIAS: Final = re.compile(r"[vV]\d+")
_IN_OWN_SPACE: Final = {
    Action.REGISTRY_READ: Action.TEAM_READ,
    Action.REGISTRY_DOWNLOAD: Action.TEAM_READ,
}
"""Own spaces have no roles of registries: who may create projects there may register models."""


class ModelRegistry:
    """The registered models of the requester's own team or space, and to read, those of their other teams.

    Own is the team or space that gets runs which name none. Reads the database: use it in a thread.

    Attributes:
        table: keeps the models.
    """

    def __init__(self, access: AccessControl, requester: Requester) -> None:
        self._access = access
        self._requester = requester
        self.table: RegisteredModelTable = access.metadata_store.registered_models
        principal = requester.principal
        self._is_operator = isinstance(principal, Operator)
        self.home = principal.home if isinstance(principal, (User, ServiceAccount)) else None
        self.now_ms = access.clock()

    def require(self, action: Action) -> None:
        """Raise unless the requester may do an action in their own registry.

        Raises:
            HTTPException: 401 or 403.
        """
        if self._is_operator:
            return
        if self.home is None:
            raise HTTPException(403, "your account has no team or space of its own for a registry")
        try:
            entity = self._access.directory.entity(self.home)
        except NotFound:
            raise HTTPException(403, "your team was deleted") from None
        if entity.owner_id is None:
            resource = RegistryResource(0, entity)
            self._access.require(self._requester, action, resource, "the model registry")
        else:
            own = _IN_OWN_SPACE.get(action, Action.PROJECT_CREATE)
            self._access.require(self._requester, own, entity, "the model registry")

    def _registries(self, action: Action) -> list[int | None]:
        """Return the entities in whose registries the requester may do an action: first the own one.

        What changes a registry works in the own one only.

        Raises:
            HTTPException: 401 or 403, there is none.
        """
        principal, directory = self._requester.principal, self._access.directory
        others: list[int] = []
        if action in _IN_OWN_SPACE and isinstance(principal, User):
            teams = (directory.entity(team_id) for team_id in sorted(principal.teams) if team_id != self.home)
            others = [
                team.id for team in teams if directory.may(principal, action, RegistryResource(0, team))
            ]
        try:
            self.require(action)
        except HTTPException:
            if not others:
                raise
            return [*others]
        return [self.home, *others]

    def models(self) -> list[RegisteredModel]:
        """Return all registered models that the requester may read, by name.

        One of the own registry hides those of its name in others, as `find` does.
        """
        models = [
            model
            for entity_id in self._registries(Action.REGISTRY_READ)
            for model in self.table.of_entity(entity_id)
        ]
        own = {model.name for model in models if model.entity_id == self.home}
        shown = [model for model in models if model.entity_id == self.home or model.name not in own]
        return sorted(shown, key=lambda model: model.name)

    def find(self, name: str, action: Action = Action.REGISTRY_READ) -> RegisteredModel:
        """Return a registered model on which the requester may do an action.

        Of the own registry, or to read it, else the only one of this name in the registries of their teams.

        Raises:
            MlflowError: there is none, or several teams have one.
            HTTPException: 401 or 403.
        """
        checked_model_name(name)
        by_entity = {model.entity_id: model for model in self.table.named(name)}
        models = [by_entity[entity_id] for entity_id in self._registries(action) if entity_id in by_entity]
        if models and (models[0].entity_id == self.home or len(models) == 1):
            return models[0]
        if models:
            raise invalid(f"several of your teams have a model {name!r}: make one of them your default team")
        if action not in _IN_OWN_SPACE and by_entity.keys() & set(self._registries(Action.REGISTRY_READ)):
            raise HTTPException(403, f"{name}: only models of your default team or own space can be changed")
        raise MlflowError(RESOURCE_DOES_NOT_EXIST, f"Registered Model with name={name} not found")

    def version(self, model: RegisteredModel, number: int) -> ModelVersion:
        """Return a version of a model.

        Raises:
            MlflowError: there is none.
        """
        for version in self.table.versions(model.id):
            if version.version == number:
                return version
        raise MlflowError(
            RESOURCE_DOES_NOT_EXIST, f"Model Version (name={model.name}, version={number}) not found"
        )

    def create(self, name: str, description: str | None, tags: dict[str, str]) -> RegisteredModel:
        """Register a model.

        Raises:
            MlflowError: an invalid name, or one that is taken.
            HTTPException: 401 or 403.
        """
        checked_model_name(name)
        self.require(Action.REGISTRY_LINK)
        try:
            self.table.create(self.home, name, description, tags, self.now_ms)
        except NameTaken:
            raise _name_taken_error(name) from None
        return self.find(name)

    def rename(self, model: RegisteredModel, name: str) -> RegisteredModel:
        """Give a registered model another name.

        Raises:
            MlflowError: an invalid name, or one that is taken.
        """
        checked_model_name(name)
        try:
            self.table.change(model.id, self.now_ms, name=name)
        except NameTaken:
            raise _name_taken_error(name) from None
        return self.find(name)

    def as_json(self, model: RegisteredModel) -> dict[str, Any]:
        """Return a model as in MLflow's responses, with the newest version of each stage."""
        newest = {version.stage: version for version in self.table.versions(model.id)}
        aliases = [
            {"alias": alias, "version": str(number)} for alias, number in sorted(model.aliases.items())
        ]
        shown: dict[str, Any] = {
            "name": model.name,
            "creation_timestamp": model.created_ms,
            "last_updated_timestamp": model.changed_ms,
            "latest_versions": [version_json(model, version) for version in newest.values()],
            "tags": tags_json(model.tags),
            "aliases": aliases,
        }
        if model.description is not None:
            shown["description"] = model.description
        return shown


def version_json(model: RegisteredModel, version: ModelVersion) -> dict[str, Any]:
    """Return a version as in MLflow's responses."""
    shown: dict[str, Any] = {
        "name": model.name,
        "version": str(version.version),
        "creation_timestamp": version.created_ms,
        "last_updated_timestamp": version.changed_ms,
        "current_stage": version.stage,
        "source": version.source,
        "run_id": version.run_uid or "",
        "status": "READY",
        "tags": tags_json(version.tags),
        "aliases": sorted(alias for alias, number in model.aliases.items() if number == version.version),
    }
    if version.description is not None:
        shown["description"] = version.description
    if version.run_link is not None:
        shown["run_link"] = version.run_link
    return shown


def tags_json(tags: Any) -> list[dict[str, str]]:
    """Return tags as MLflow's clients read them, by name."""
    return [{"key": key, "value": value} for key, value in sorted(tags.items())]


def checked_model_name(name: str) -> None:
    """Return the name, if a registered model can have it.

    Raises:
        MlflowError: no registered model can have the name.
    """
    if not name.strip():
        raise invalid("Missing value for required parameter 'name'.")
    if len(name) > MAX_NAME:
        raise invalid(f"Registered model name exceeds the maximum length of {MAX_NAME} characters")
    if "/" in name or ":" in name:
        raise invalid(f"Invalid model name '{name}'. Names cannot contain '/' or ':'.")
    if posixpath.normpath(name) != name or name in (".", "..") or "\x00" in name:
        raise invalid(
            f"Invalid value \"{name}\" for parameter 'name' supplied: Names may be treated as files in "
            "certain cases, and must not resolve to other names when treated as such."
        )


def checked_alias(alias: str) -> str:
    """Return the alias, if a version can have it.

    Raises:
        MlflowError: no alias can have the name.
    """
    if not _ALIAS.fullmatch(alias):
        raise invalid(
            f"Invalid alias name: '{alias[:100]}'. Names may only contain alphanumerics, underscores (_), "
            "and dashes (-)."
        )
    if len(alias) > MAX_ALIAS:
        raise invalid(f"Registered model alias name exceeds the maximum length of {MAX_ALIAS} characters")
    if alias.lower() == "latest":
        raise invalid("'latest' alias name (case insensitive) is reserved.")
    if _VERSION_ALIAS.fullmatch(alias):
        raise invalid(f"Version alias name '{alias}' is reserved.")
    return alias


def sent_version(sent: SentMessage) -> int:
    """Return the number of the version that a message names, or raise MlflowError."""
    text = sent.required_identifier("version")
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise invalid(f"Parameter 'version' must be an integer, got '{text[:60]}'.")
    return int(text)


def _name_taken_error(name: str) -> MlflowError:
    return MlflowError(RESOURCE_ALREADY_EXISTS, f"Registered Model (name={name}) already exists.")


def _registry(request: Request) -> ModelRegistry:
    return ModelRegistry(access_of(request), requester_of(request))


TheRegistry = Annotated[ModelRegistry, Depends(_registry)]
"""The registry of the requester."""
