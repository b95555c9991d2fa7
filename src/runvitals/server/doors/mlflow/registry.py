"""The registry of models of one requester: which there are, and what may be done with them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Final

from fastapi import Depends, HTTPException, Request

from runvitals.model.artifacts import UnknownArtifact
from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.decisions.registry_actions import registry_of
from runvitals.server.access.principals import Operator, ServiceAccount, User
from runvitals.server.access.requester import Requester, requester_of
from runvitals.server.access.resources import Registry
from runvitals.server.artifacts.storage.protection import Changer
from runvitals.server.doors.mlflow.errors import (
    RESOURCE_ALREADY_EXISTS,
    RESOURCE_DOES_NOT_EXIST,
    MlflowError,
    invalid,
)
from runvitals.server.doors.mlflow.requests import SentMessage
from runvitals.server.http.immediate import immediate
from runvitals.server.projects.storage.projects import ProjectOwner
from runvitals.server.registry.rights import changer_of
from runvitals.server.registry.storage.model_versions import ModelVersion, ModelVersionTable
from runvitals.server.registry.storage.registered_models import RegisteredModel, RegisteredModelTable
from runvitals.server.service_parameters import access_of
from runvitals.store.errors import NameTaken, NotFound

LATEST: Final = "latest"
"""The alias of the newest version, which is not stored."""
PROMPT_TAG: Final = "mlflow.prompt.is_prompt"
"""Prompts of MLflow are registered models with this tag; searches list them only when it is named."""
MAX_NAME: Final = 128
MAX_ALIAS: Final = 255
_ALIAS: Final = re.compile(r"[\w\-]+")
_VERSION_ALIAS: Final = re.compile(r"[vV]\d+")
_READS: Final = (Action.REGISTRY_READ, Action.REGISTRY_DOWNLOAD)


class ModelRegistry:
    """The collections of all registries that the requester may read, as MLflow's registered models.

    New ones get into the registry `model` of the requester's home: the team or space that gets runs which
    name none. Reads the database: use it in a thread.

    Attributes:
        table, versions_table: keep the models and their versions.
    """

    def __init__(self, access: AccessControl, requester: Requester) -> None:
        self._access = access
        self._requester = requester
        self.table: RegisteredModelTable = access.metadata_store.registered_models
        self.versions_table: ModelVersionTable = access.metadata_store.model_versions
        principal = requester.principal
        self._is_operator = isinstance(principal, Operator)
        self.home = principal.home if isinstance(principal, (User, ServiceAccount)) else None
        self.now_ms = access.clock()

    def require(self, action: Action) -> None:
        """Raise unless the requester may do an action in a registry of their home.

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
        self._access.require(self._requester, action, Registry(0, entity), "the model registry")

    def require_in(self, project_id: int, action: Action) -> None:
        """Raise unless the requester may do an action in a registry.

        Raises:
            HTTPException: 401, 403 or 404.
        """
        if not self._is_operator:
            registry = registry_of(self._access.directory.project(project_id))
            self._access.require(self._requester, action, registry, "the model registry")

    def changer(self, model: RegisteredModel) -> Changer:
        """Return the requester as who changes a model."""
        return changer_of(self._access, self._requester, model.project_id)

    def _readable(self, models: Iterable[RegisteredModel]) -> list[RegisteredModel]:
        if self._is_operator:
            return list(models)
        directory, principal = self._access.directory, self._requester.principal
        may: dict[int, bool] = {}
        for project_id in {model.project_id for model in models}:
            registry = registry_of(directory.project(project_id))
            may[project_id] = directory.may(principal, Action.REGISTRY_READ, registry)
        return [model for model in models if may[model.project_id]]

    def models(self) -> list[RegisteredModel]:
        """Return all registered models that the requester may read, by name.

        One of the own registry hides those of its name in others, as `find` does.

        Raises:
            HTTPException: 401 or 403, there is none.
        """
        if self._is_operator:
            return self.table.of_entity(None)
        readable = self._access.directory.readable_runs(self._requester.principal)
        models = self.table.of_projects(frozenset() if readable is None else readable.projects)
        if not models:
            self.require(Action.REGISTRY_READ)
        own = {model.name for model in models if model.entity_id == self.home}
        visible_models = [model for model in models if model.entity_id == self.home or model.name not in own]
        return sorted(visible_models, key=lambda model: model.name)

    def find(self, name: str, action: Action = Action.REGISTRY_READ) -> RegisteredModel:
        """Return a registered model on which the requester may do an action.

        Of the own registries, or else the only one of this name in others.

        Raises:
            MlflowError: there is none, or several teams have one.
            HTTPException: 401 or 403.
        """
        checked_model_name(name)
        models = self._readable(self.table.named(name))
        own = [model for model in models if model.entity_id == self.home] or models
        if len(own) > 1:
            raise invalid(f"several of your teams have a model {name!r}: make one of them your default team")
        if not own:
            if not any(self._may_in_home(read) for read in _READS):
                self.require(action)
            raise _unknown_model(name)
        self.require_in(own[0].project_id, action)
        return own[0]

    def _may_in_home(self, action: Action) -> bool:
        if self._is_operator:
            return True
        if self.home is None:
            return False
        try:
            entity = self._access.directory.entity(self.home)
        except NotFound:
            return False
        return self._access.may(self._requester, action, Registry(0, entity))

    def version(self, model: RegisteredModel, number: int) -> ModelVersion:
        """Return a version of a model.

        Raises:
            MlflowError: there is none.
        """
        version = self.versions_table.numbered(model.id, number)
        if version is not None:
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
        owner = ProjectOwner(self.home, self._requester.user_id, None if self.home is None else "team")
        by = Changer() if self._is_operator else Changer(self._requester.actor)
        with _naming(name):
            self.table.create(owner, name, description, tags, self.now_ms, by)
        self._access.rights_changed()
        return self.find(name)

    def rename(self, model: RegisteredModel, name: str) -> RegisteredModel:
        """Give a registered model another name in its registry.

        Raises:
            MlflowError: an invalid name, or one that is taken; or the model no longer has its old name.
        """
        checked_model_name(name)
        registry, dot, rest = name.partition(".")
        inside = bool(dot) and model.name.startswith(f"{registry}.")
        try:
            with _naming(name):
                self.table.rename(model, rest if inside else name, self.now_ms)
        except UnknownArtifact:  # another request was faster
            raise _unknown_model(model.name) from None
        return self.find(name)

    def as_json(self, model: RegisteredModel) -> dict[str, Any]:
        """Return a model as in MLflow's responses, with the newest version of each stage."""
        newest = {version.stage: version for version in self.versions_table.of_collection(model.id)}
        aliases = [
            {"alias": alias, "version": str(number)} for alias, number in sorted(model.aliases.items())
        ]
        body: dict[str, Any] = {
            "name": model.name,
            "creation_timestamp": model.created_ms,
            "last_updated_timestamp": model.changed_ms,
            "latest_versions": [version_json(model, version) for version in newest.values()],
            "tags": tags_json(model.tags),
            "aliases": aliases,
        }
        if model.description is not None:
            body["description"] = model.description
        return body


def version_json(model: RegisteredModel, version: ModelVersion) -> dict[str, Any]:
    """Return a version as in MLflow's responses."""
    body: dict[str, Any] = {
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
        body["description"] = version.description
    if version.run_link is not None:
        body["run_link"] = version.run_link
    return body


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
    if alias.lower() == LATEST:
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


def _unknown_model(name: str) -> MlflowError:
    return MlflowError(RESOURCE_DOES_NOT_EXIST, f"Registered Model with name={name} not found")


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Raise what a model of this name could not be stored for as errors of MLflow."""
    try:
        yield
    except NameTaken:
        text = f"Registered Model (name={name}) already exists."
        raise MlflowError(RESOURCE_ALREADY_EXISTS, text) from None
    except ValueError as error:
        raise invalid(str(error)) from None


@immediate
def _registry(request: Request) -> ModelRegistry:
    return ModelRegistry(access_of(request), requester_of(request))


TheRegistry = Annotated[ModelRegistry, Depends(_registry)]
"""The registry of the requester."""
