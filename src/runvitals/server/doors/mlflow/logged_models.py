"""The logged models of one requester: models that trainings make, before one is registered."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec
from fastapi import Depends, Request

from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.doors.mlflow.errors import RESOURCE_DOES_NOT_EXIST, MlflowError, invalid
from runvitals.server.doors.mlflow.experiments import Experiments, experiments_of
from runvitals.server.doors.mlflow.registry import tags_json
from runvitals.server.doors.mlflow.requests import json_number
from runvitals.server.doors.mlflow.storage.experiments import StoredExperiment
from runvitals.server.http.immediate import immediate
from runvitals.server.registry.storage.logged_model_metrics import LoggedModelMetricTable, ModelMetric
from runvitals.server.registry.storage.logged_models import LoggedModel, LoggedModelTable
from runvitals.server.service_parameters import access_of

PENDING: Final = "LOGGED_MODEL_PENDING"
STATUSES: Final = {
    "0": "LOGGED_MODEL_STATUS_UNSPECIFIED",
    "1": PENDING,
    "2": "LOGGED_MODEL_READY",
    "3": "LOGGED_MODEL_UPLOAD_FAILED",
}
MAX_NAME: Final = 500
VERSIONS_TAG: Final = "mlflow.modelVersions"
_MAX_VERSIONS: Final = 100


class LoggedModels:
    """Reads the database: use it in a thread.

    Attributes:
        table: keeps the models; `metrics`: what was measured of them.
        experiments: those of the requester.
    """

    def __init__(self, access: AccessControl, experiments: Experiments) -> None:
        self.table: LoggedModelTable = access.metadata_store.logged_models
        self.metrics: LoggedModelMetricTable = access.metadata_store.logged_model_metrics
        self.experiments = experiments
        self.now_ms = access.clock()

    def find(self, uid: str, action: Action = Action.PROJECT_READ) -> LoggedModel:
        """Return a logged model, on whose experiment the requester may do an action.

        Raises:
            MlflowError: there is none.
            HTTPException: 401 or 403.
        """
        model = self.table.get(uid)
        if model is None or not self.experiments.may(self.experiment(model), Action.PROJECT_READ):
            raise MlflowError(RESOURCE_DOES_NOT_EXIST, f"Logged model with ID '{uid[:200]}' not found.")
        self.experiments.require(self.experiment(model), action)
        return model

    def experiment(self, model: LoggedModel) -> StoredExperiment:
        """Return the experiment of a logged model."""
        return self.experiments.of_project(model.project_id)

    def create(
        self,
        experiment: StoredExperiment,
        name: str | None,
        kind: str | None,
        run: tuple[str, int] | None,
        params: dict[str, str],
        tags: dict[str, str],
    ) -> LoggedModel:
        """Add a model whose files have not arrived yet. `run`: the id and number of the one that made it."""
        uid = f"m-{secrets.token_hex(16)}"
        model = LoggedModel(
            uid,
            experiment.id,
            checked_name(name) if name else f"model-{uid[2:10]}",
            kind,
            PENDING,
            None if run is None else run[0],
            params,
            tags,
            self.now_ms,
            self.now_ms,
        )
        self.table.add(model, None if run is None else run[1])
        return model

    def note_version(self, model: LoggedModel, name: str, version: int) -> None:
        """Note in the tags of a model that a version was made from it, as MLflow does.

        Does nothing if the requester may not change the model.
        """
        if not self.experiments.may(self.experiment(model), Action.ARTIFACT_UPDATE):
            return
        noted = json.dumps([*_versions(model.tags.get(VERSIONS_TAG, "")), {"name": name, "version": version}])
        self.table.change(model.uid, self.now_ms, tags={VERSIONS_TAG: noted})

    def location(self, model: LoggedModel) -> str:
        """Return where the files of a model are."""
        experiment = self.experiment(model)
        root = experiment.artifact_root(self.experiments.id_of(experiment))
        return f"{root}/models/{model.uid}/artifacts"

    def with_metrics(self, models: Sequence[LoggedModel]) -> list[dict[str, Any]]:
        """Return models as in MLflow's responses, with the newest values of their metrics."""
        measured: dict[str, list[ModelMetric]] = {}
        for metric in self.metrics.of_models([model.uid for model in models]):
            measured.setdefault(metric.model_uid, []).append(metric)
        return [self._as_json(model, measured.get(model.uid, ())) for model in models]

    def as_json(self, model: LoggedModel) -> dict[str, Any]:
        """Return a model as in MLflow's responses."""
        return self.with_metrics([model])[0]

    def _as_json(self, model: LoggedModel, metrics: Sequence[ModelMetric]) -> dict[str, Any]:
        info: dict[str, Any] = {
            "model_id": model.uid,
            "experiment_id": self.experiments.id_of(self.experiment(model)),
            "name": model.name,
            "creation_timestamp_ms": model.created_ms,
            "last_updated_timestamp_ms": model.changed_ms,
            "artifact_uri": self.location(model),
            "status": model.status,
            "tags": tags_json(model.tags),
        }
        optional = {"model_type": model.type, "source_run_id": model.run_uid}
        info |= {field: value for field, value in optional.items() if value is not None}
        data: dict[str, Any] = {"params": tags_json(model.params)}
        if metrics:
            data["metrics"] = [_metric_json(metric) for metric in metrics]
        return {"info": info, "data": data}


def _metric_json(metric: ModelMetric) -> dict[str, Any]:
    message: dict[str, Any] = {
        "key": metric.key,
        "value": json_number(metric.value),
        "timestamp": metric.timestamp,
        "step": metric.step,
        "model_id": metric.model_uid,
        "run_id": metric.run_uid,
    }
    if metric.dataset_name:
        message |= {"dataset_name": metric.dataset_name, "dataset_digest": metric.dataset_digest}
    return message


def _versions(noted: str) -> list[Any]:
    """Return the versions in a tag; none if somebody wrote something else into it."""
    try:
        versions = msgspec.json.decode(noted, type=list[Any])
    except (msgspec.MsgspecError, RecursionError):
        return []
    return versions[-_MAX_VERSIONS:]


def checked_name(name: str) -> str:
    """Return the name, if a logged model can have it.

    Raises:
        MlflowError: no logged model can have the name.
    """
    if len(name) > MAX_NAME:
        raise invalid(f"Invalid model name: it exceeds the maximum length of {MAX_NAME} characters")
    if any(letter in name for letter in "/:.%\"'"):
        raise invalid(
            f"Invalid model name ({name[:100]!r}) provided. Model name must be a non-empty string and cannot "
            "contain the following characters: ('/', ':', '.', '%', '\"', \"'\")"
        )
    return name


@immediate
def _logged_models(request: Request) -> LoggedModels:
    return LoggedModels(access_of(request), experiments_of(request))


TheLoggedModels = Annotated[LoggedModels, Depends(_logged_models)]
"""The logged models of the requester."""
