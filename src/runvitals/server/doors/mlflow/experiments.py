"""Experiments of MLflow: the projects that a requester may use."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any, Final

from fastapi import Depends
from starlette.exceptions import HTTPException
from starlette.requests import Request

from runvitals.model.errors import UnknownProject
from runvitals.model.hidden_characters import has_hidden_characters
from runvitals.model.names import DEFAULT_PROJECT, can_be_created
from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.principals import Operator, ServiceAccount, User
from runvitals.server.access.requester import Requester, requester_of
from runvitals.server.access.resources import Project
from runvitals.server.artifacts.link_refusal import refusal
from runvitals.server.artifacts.storage.rows import LinkedVersions
from runvitals.server.doors.mlflow.errors import (
    RESOURCE_ALREADY_EXISTS,
    RESOURCE_DOES_NOT_EXIST,
    MlflowError,
    invalid,
    unknown_experiment,
)
from runvitals.server.doors.mlflow.storage.experiments import StoredExperiment
from runvitals.server.http.immediate import immediate
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.projects.storage.owned_projects import MAX_PROJECT_NAME
from runvitals.server.projects.storage.projects import NOBODY
from runvitals.server.service_parameters import access_of
from runvitals.store.errors import NameTaken, NotFound

DEFAULT_ID: Final = "0"
"""The id that clients send when they have chosen no experiment: the project `default`."""
DEFAULT_NAME: Final = "Default"
MAX_NAME: Final = 500
ACTIVE, DELETED = "active", "deleted"
_NOT_IN_NAMES: Final = re.compile(r"[/\\\x00-\x1f]+")


class Experiments:
    """The experiments of one requester. Reads the database: use it in a thread."""

    def __init__(self, access: AccessControl, requester: Requester) -> None:
        self._access = access
        self._requester = requester
        self._store: MetadataStore = access.metadata_store
        self._table = self._store.mlflow_experiments
        principal = requester.principal
        self.is_operator = isinstance(principal, Operator)
        self.home = principal.home if isinstance(principal, (User, ServiceAccount)) else None

    # Finding

    def find(self, experiment_id: str, action: Action = Action.PROJECT_READ) -> StoredExperiment:
        """Return an experiment by its id, also one in the trash, on which the requester may do an action.

        Raises:
            MlflowError: there is none.
            HTTPException: 401 or 403.
        """
        experiment = self._default() if experiment_id == DEFAULT_ID else self._with_id(experiment_id)
        if experiment is None and experiment_id == DEFAULT_ID and action is Action.PROJECT_READ:
            experiment = self.unused_default()
            if experiment is not None:
                return experiment
        if experiment is None:
            raise unknown_experiment(experiment_id)
        self.require(experiment, action)
        return experiment

    def find_active(self, experiment_id: str, action: Action) -> StoredExperiment:
        """Return an experiment that is not in the trash, on which the requester may do an action.

        Raises:
            MlflowError: there is none, or it is in the trash.
            HTTPException: 401 or 403.
        """
        try:
            experiment = self.find(experiment_id, action)
        except HTTPException:  # in the trash, nobody may
            if self.find(experiment_id).deleted_ms is None:
                raise
            raise not_active(experiment_id) from None
        if experiment.deleted_ms is not None:
            raise not_active(self.id_of(experiment))
        return experiment

    def of_project(self, project_id: int) -> StoredExperiment:
        """Return the experiment of a project that exists."""
        return self._with_number(project_id)

    def named(self, name: str) -> StoredExperiment | None:
        """Return the readable experiment of this name.

        `name` in the requester's own space or team, `entity/name` elsewhere.
        """
        if name == DEFAULT_NAME and (default := self._default() or self.unused_default()) is not None:
            return default
        experiments = [
            experiment for experiment in self._table.named(name) if self.name_of(experiment) == name
        ]
        entity, slash, rest = name.partition("/")
        if slash:
            experiments += [
                experiment for experiment in self._table.named(rest) if experiment.entity == entity
            ]
        return next(
            (experiment for experiment in experiments if self.may(experiment, Action.PROJECT_READ)), None
        )

    def all(self) -> list[StoredExperiment]:
        """Return the readable experiments, by id."""
        return [experiment for experiment in self._table.all() if self.may(experiment, Action.PROJECT_READ)]

    def numbers(self, ids: Iterable[str]) -> frozenset[int]:
        """Return the numbers of the readable experiments among some. There may be any number of ids."""
        different = set(ids)
        numbers = {int(each) for each in different if _is_number(each)}
        visible = [
            experiment
            for experiment in self._table.of_projects(numbers)
            if self.may(experiment, Action.PROJECT_READ)
        ]
        if DEFAULT_ID in different and (default := self._default()) is not None:
            visible += [default] if self.may(default, Action.PROJECT_READ) else []
        return frozenset(experiment.id for experiment in visible)

    def _with_id(self, experiment_id: str) -> StoredExperiment | None:
        return self._table.get(int(experiment_id)) if _is_number(experiment_id) else None

    def _default(self) -> StoredExperiment | None:
        return next(
            (experiment for experiment in self._table.named(DEFAULT_PROJECT) if self._is_default(experiment)),
            None,
        )

    def unused_default(self) -> StoredExperiment | None:
        """Return the default experiment, which clients expect, while no project exists for it; else None."""
        if self._default() is not None or not (self.is_operator or self.home is not None):
            return None
        return StoredExperiment(0, DEFAULT_PROJECT, self.home, None, created_ms=0, deleted_ms=None)

    def _is_default(self, experiment: StoredExperiment) -> bool:
        return experiment.project == DEFAULT_PROJECT and experiment.entity_id == self.home

    def id_of(self, experiment: StoredExperiment) -> str:
        """Return the id that the requester's clients know an experiment by."""
        return DEFAULT_ID if self._is_default(experiment) else str(experiment.id)

    def name_of(self, experiment: StoredExperiment) -> str:
        """Return the name that the requester's clients know an experiment by."""
        if self._is_default(experiment):
            return experiment.name or DEFAULT_NAME
        name = experiment.name or experiment.project
        if experiment.entity_id == self.home or experiment.entity is None:
            return name
        return f"{experiment.entity}/{name}"

    # Rights

    def may(self, experiment: StoredExperiment, action: Action) -> bool:
        """Return whether the requester may do an action on an experiment."""
        if self.is_operator:
            return True
        try:
            project = self._access.directory.project(experiment.id)
        except (UnknownProject, NotFound):  # no team has adopted it
            return False
        return self._access.may(self._requester, action, project)

    def require(self, experiment: StoredExperiment, action: Action) -> None:
        """Raise unless the requester may do an action on the experiment.

        Raises:
            MlflowError: the requester may not know of the experiment.
            HTTPException: 401 or 403.
        """
        if self.is_operator:
            return
        try:
            project = self._access.directory.project(experiment.id)
        except (UnknownProject, NotFound):
            raise unknown_experiment(str(experiment.id)) from None
        if not self._access.may(self._requester, Action.PROJECT_READ, project) and (
            action is not Action.RUN_CREATE
        ):
            raise unknown_experiment(str(experiment.id))
        changes = action is not Action.PROJECT_READ
        what = f"experiment {self.name_of(experiment)!r}"
        try:
            self._access.require(self._requester, action, project, what, changes=changes)
        except HTTPException as error:
            if error.status_code != 404:
                raise
            # Its text has the name of the experiment.
            raise unknown_experiment(self.id_of(experiment)) from None

    # Changes

    def create(
        self, name: str, artifact_location: str | None, tags: dict[str, str | None]
    ) -> StoredExperiment:
        """Create an experiment with a project.

        Raises:
            MlflowError: an invalid name, or one that is taken.
            HTTPException: 401 or 403.
        """
        checked_name(name)
        existing = self.named(name)
        if existing is not None:
            raise _name_taken_error(name, existing)
        entity_id, own_name = self._owner_and_name(name)
        if not self.is_operator:
            self._require_new(entity_id, own_name)

        def create_with_name() -> int:
            project, now_ms = _project_name(own_name), self._access.clock()
            if self.is_operator:
                if self._store.projects.named(project):
                    project = self._free_name(project)
                number = self._store.projects.ensure(project, NOBODY, now_ms)
            else:
                number = self._create_owned(entity_id, project, name)
            values: dict[str, str | None] = {}
            if project != own_name:
                values["name"] = own_name
            if artifact_location:
                values["artifact_location"] = artifact_location
            if values:
                self._table.set(number, now_ms, **values)
            if tags:
                self._table.set_tags(number, tags)
            return number

        # All processes of a training create their experiment at the same time.
        number = self._access.accounts.in_one_transaction(create_with_name)
        self._access.rights_changed()
        return self._with_number(number)

    def _owner_and_name(self, name: str) -> tuple[int | None, str]:
        """Return the entity that a new experiment belongs to, and its name there."""
        entity, slash, rest = name.partition("/")
        if slash and rest and not self.is_operator:
            owner = self._access.directory.entity_named(entity)
            if owner is not None and self._access.may(self._requester, Action.PROJECT_CREATE, owner):
                return owner.id, rest
        return self.home, name

    def _require_new(self, entity_id: int | None, own_name: str) -> None:
        if entity_id is None:
            raise invalid("name the team that the experiment belongs to: team/name")
        owner = self._access.directory.entity(entity_id)
        self._access.require(self._requester, Action.PROJECT_CREATE, owner, f"experiment {own_name!r}")

    def _create_owned(self, entity_id: int | None, project: str, name: str) -> int:
        """Create the project of an experiment, under another name if one that has none of its own has it."""
        assert entity_id is not None  # it was required
        by, user_id = self._requester.actor, self._requester.user_id
        for free in (project, self._free_name(project)):
            try:
                row = self._access.accounts.owned_projects.create(
                    entity_id, free, by, self._access.clock(), owner_id=user_id
                )
            except NameTaken:
                existing = self.named(name)
                if existing is not None:  # since we looked
                    raise _name_taken_error(name, existing) from None
                continue
            except ValueError as error:
                raise invalid(str(error)) from None
            return row.id
        raise MlflowError(RESOURCE_ALREADY_EXISTS, f"Experiment(name={name}) already exists.")

    def _free_name(self, project: str) -> str:
        """Return a name like this one, for a project whose own name is taken by another experiment."""
        for number in range(2, 1000):
            suffix = f"-{number}"
            name = project[: MAX_PROJECT_NAME - len(suffix)] + suffix
            if not self._store.projects.named(name):
                return name
        raise MlflowError(RESOURCE_ALREADY_EXISTS, f"Experiment(name={project}) already exists.")

    def rename(self, experiment: StoredExperiment, name: str) -> None:
        """Give an experiment another name.

        Raises:
            MlflowError: an invalid name, or one that is taken.
        """
        checked_name(name)
        existing = self.named(name)
        if existing is not None and existing.id != experiment.id:
            raise _name_taken_error(name, existing)
        project, now_ms = _project_name(name), self._access.clock()
        try:
            if self.is_operator:
                self._table.rename(experiment.id, project, now_ms)
            else:
                owned = self._access.accounts.owned_projects
                owned.update(experiment.id, self._requester.actor, now_ms, name=project)
                self._access.rights_changed()
        except NameTaken:
            raise MlflowError(RESOURCE_ALREADY_EXISTS, f"Experiment(name={name}) already exists.") from None
        self._table.set(experiment.id, now_ms, name=name if name != project else None)

    def set_tags(self, experiment: StoredExperiment, tags: dict[str, str | None]) -> None:
        """Set tags; None removes one."""
        self._table.set_tags(experiment.id, tags)

    def trash(self, experiment: StoredExperiment) -> None:
        """Move an experiment and its runs to the trash.

        Raises:
            HTTPException: 409: versions of its artifacts are linked in other projects.
        """
        if experiment.deleted_ms is not None:
            raise unknown_experiment(self.id_of(experiment))
        if self.is_operator:
            self._table.trash(experiment.id, self._access.clock())
            return
        projects, by, now_ms = (
            self._access.accounts.owned_projects,
            self._requester.actor,
            self._access.clock(),
        )
        try:
            self._access.metadata_store.artifacts.dependents.delete_project(
                experiment.id, lambda: projects.trash(experiment.id, by, now_ms)
            )
        except LinkedVersions as error:
            raise refusal(self._access, self._requester, "the experiment", error) from None
        self._access.rights_changed()

    def restore(self, experiment: StoredExperiment) -> None:
        """Take an experiment and the runs that were deleted with it out of the trash."""
        if experiment.deleted_ms is None:
            message = f"Experiment {self.id_of(experiment)} is not in the trash"
            raise MlflowError(RESOURCE_DOES_NOT_EXIST, message)
        if self.is_operator:
            self._table.restore(experiment.id, self._access.clock())
            return
        self._access.accounts.owned_projects.restore(
            experiment.id, self._requester.actor, self._access.clock()
        )
        self._access.rights_changed()

    def for_new_run(self, experiment_id: str) -> StoredExperiment:
        """Return the experiment that a new run belongs to. The default one is created if it does not exist.

        Raises:
            MlflowError: there is none, or it is in the trash.
            HTTPException: 401 or 403.
        """
        if experiment_id == DEFAULT_ID and self._default() is None:
            if self.is_operator:
                self._store.projects.ensure(DEFAULT_PROJECT, NOBODY, self._access.clock())
            else:
                self._require_new(self.home, DEFAULT_NAME)
                try:
                    self._create_owned(self.home, DEFAULT_PROJECT, DEFAULT_NAME)
                except MlflowError as error:
                    if error.code != RESOURCE_ALREADY_EXISTS:  # another run has created it meanwhile
                        raise
                self._access.rights_changed()
        return self.find_active(experiment_id, Action.RUN_CREATE)

    def _with_number(self, number: int) -> StoredExperiment:
        experiment = self._table.get(number)
        if experiment is None:
            raise unknown_experiment(str(number))
        return experiment

    def as_json(self, experiment: StoredExperiment) -> dict[str, Any]:
        """Return an experiment as in MLflow's responses."""
        experiment_id = self.id_of(experiment)
        return {
            "experiment_id": experiment_id,
            "name": self.name_of(experiment),
            "artifact_location": experiment.artifact_location or experiment.artifact_root(experiment_id),
            "lifecycle_stage": ACTIVE if experiment.deleted_ms is None else DELETED,
            "creation_time": experiment.created_ms,
            "last_update_time": experiment.changed_ms or experiment.created_ms,
            "tags": tags_json(experiment.tags.items()),
        }

    def project(self, experiment: StoredExperiment) -> Project | None:
        """Return the project that decides about rights; None on a server without accounts."""
        return None if self.is_operator else self._access.directory.project(experiment.id)


def tags_json(tags: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    """Return tags as MLflow's clients read them."""
    return [{"key": key, "value": value} for key, value in tags]


def checked_name(name: str) -> None:
    """Return the name, or raise MlflowError if no experiment can have it."""
    if not name.strip():
        raise invalid("Invalid experiment name: it must not be empty")
    if len(name) > MAX_NAME:
        raise invalid(f"'name' exceeds the maximum length of {MAX_NAME} characters")
    if has_hidden_characters(name):
        raise invalid(f"Invalid experiment name: {name[:60]!a} has control or invisible characters")


def _project_name(name: str) -> str:
    """Return the name of the project of an experiment: the same, if a project can have it."""
    project = _NOT_IN_NAMES.sub("-", name).strip(" -")[:MAX_PROJECT_NAME].strip()
    if not project or not can_be_created(project):
        return "experiment"
    return project


def not_active(experiment_id: str) -> MlflowError:
    """400: the experiment is in the trash."""
    return invalid(f"The experiment {experiment_id} must be in the 'active' state. Current state is deleted.")


def _name_taken_error(name: str, experiment: StoredExperiment) -> MlflowError:
    state = "" if experiment.deleted_ms is None else " in deleted state. You can restore the experiment, or"
    more = " permanently delete the experiment to create a new one." if state else "."
    return MlflowError(RESOURCE_ALREADY_EXISTS, f"Experiment(name={name}) already exists{state}{more}")


@immediate
def experiments_of(request: Request) -> Experiments:
    """Return the experiments of the requester."""
    return Experiments(access_of(request), requester_of(request))


TheExperiments = Annotated[Experiments, Depends(experiments_of)]


def _is_number(experiment_id: str) -> bool:
    return experiment_id.isascii() and experiment_id.isdecimal() and len(experiment_id) <= 9
