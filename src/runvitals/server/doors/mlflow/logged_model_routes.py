"""`logged-models/…`."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Path, Request
from starlette.responses import Response

from runvitals.server.access.actions import Action
from runvitals.server.access.permission import needs
from runvitals.server.doors.mlflow.errors import RESOURCE_DOES_NOT_EXIST, MlflowError, invalid
from runvitals.server.doors.mlflow.limits import checked_param, checked_tag, sent_params, sent_tags
from runvitals.server.doors.mlflow.logged_model_search import ModelSearch
from runvitals.server.doors.mlflow.logged_models import STATUSES, LoggedModels, TheLoggedModels
from runvitals.server.doors.mlflow.pages import max_results, page_of
from runvitals.server.doors.mlflow.requests import TheMessage, mlflow_router, to_response
from runvitals.server.doors.mlflow.runs import find_run
from runvitals.server.registry.storage.logged_models import LoggedModel
from runvitals.server.services import shared_services_of

DEFAULT_PAGE: Final = 100
MAX_PAGE: Final = 1000
MAX_EXPERIMENTS: Final = 1000
# `LoggedModels.find` decides, by the experiment of the model.
READS: Final = [needs("filtered artifact:read")]
CHANGES: Final = [needs("filtered artifact:create")]
ModelId = Annotated[str, Path(max_length=200)]

router: Final = mlflow_router()


@router.post("/logged-models", *CHANGES)
def create(request: Request, sent: TheMessage, models: TheLoggedModels) -> Response:
    """Create a logged model, of a run if the message names one."""
    experiment = models.experiments.for_new_run(sent.required_identifier("experiment_id"))
    models.experiments.require(experiment, Action.ARTIFACT_CREATE)
    run_uid = sent.text("source_run_id", most=256) or None
    run = None if run_uid is None else (run_uid, find_run(request, run_uid, Action.RUN_READ).run_id)
    model = models.create(
        experiment,
        sent.text("name", most=100_000),
        sent.text("model_type", most=500),
        run,
        sent_params(sent),
        sent_tags(sent),
    )
    return to_response({"model": models.as_json(model)})


@router.post("/logged-models/search", *READS)
def search(sent: TheMessage, models: TheLoggedModels) -> Response:
    """Return a page of the logged models of some experiments that match the filters."""
    ids = sent.texts("experiment_ids")
    if not 0 < len(ids) <= MAX_EXPERIMENTS:
        raise invalid(f"experiment_ids: expected 1 to {MAX_EXPERIMENTS} experiments")
    model_search = ModelSearch.of(sent)
    most = max_results(sent.integer("max_results") or None, DEFAULT_PAGE, MAX_PAGE)
    projects = [models.experiments.find(experiment_id).id for experiment_id in ids]
    page, following = page_of(model_search.find(models, projects), sent, most)
    more = {} if following is None else {"next_page_token": following}
    return to_response({"models": models.with_metrics(page), **more})


@router.get("/logged-models/{model_id}", *READS)
def get(model_id: ModelId, models: TheLoggedModels) -> Response:
    """Return a logged model."""
    return to_response({"model": models.as_json(models.find(model_id))})


@router.patch("/logged-models/{model_id}", *CHANGES)
def finalize(model_id: ModelId, sent: TheMessage, models: TheLoggedModels) -> Response:
    """Set the status of a logged model."""
    model = models.find(model_id, Action.ARTIFACT_UPDATE)
    status_name = sent.required_identifier("status")
    status = STATUSES.get(status_name, status_name)
    if status not in STATUSES.values():
        raise invalid(
            f"Invalid model status: {status_name[:60]}. Expected statuses: {sorted(STATUSES.values())}"
        )
    models.table.change(model.uid, models.now_ms, status=status)
    return _respond(models, model)


def _respond(models: LoggedModels, model: LoggedModel) -> Response:
    return to_response({"model": models.as_json(models.find(model.uid))})


@router.delete("/logged-models/{model_id}", *CHANGES)
def delete(request: Request, model_id: ModelId, models: TheLoggedModels) -> Response:
    """Delete a logged model and its files."""
    model = models.find(model_id, Action.ARTIFACT_DELETE)
    models.table.delete(model.uid)
    files = shared_services_of(request).access.metadata_store.mlflow_files
    files.remove(model.project_id, f"models/{model.uid}")
    return to_response({})


@router.patch("/logged-models/{model_id}/tags", *CHANGES)
def set_tags(model_id: ModelId, sent: TheMessage, models: TheLoggedModels) -> Response:
    """Set tags of a logged model."""
    model = models.find(model_id, Action.ARTIFACT_UPDATE)
    tags: dict[str, str | None] = {**sent_tags(sent)}
    models.table.change(model.uid, models.now_ms, tags=tags)
    return _respond(models, model)


@router.delete("/logged-models/{model_id}/tags/{key:path}", *CHANGES)
def delete_tag(model_id: ModelId, key: str, models: TheLoggedModels) -> Response:
    """Delete a tag of a logged model."""
    model = models.find(model_id, Action.ARTIFACT_UPDATE)
    name, _ = checked_tag(key, "")
    if name not in model.tags:
        message = f"No tag with key '{name[:100]}' found for model with ID '{model.uid}'."
        raise MlflowError(RESOURCE_DOES_NOT_EXIST, message)
    models.table.change(model.uid, models.now_ms, tags={name: None})
    return _respond(models, model)


@router.post("/logged-models/{model_id}/params", *CHANGES)
def log_params(model_id: ModelId, sent: TheMessage, models: TheLoggedModels) -> Response:
    """Set parameters of a logged model."""
    model = models.find(model_id, Action.ARTIFACT_UPDATE)
    params = dict(checked_param(param.get("key"), param.get("value")) for param in sent.objects("params"))
    models.table.change(model.uid, models.now_ms, params=params)
    return to_response({})
