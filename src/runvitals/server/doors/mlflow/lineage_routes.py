"""`runs/log-inputs`, `runs/outputs` and `experiments/search-datasets`: what runs used and made."""

from __future__ import annotations

from typing import Any, Final

from fastapi import Request
from starlette.responses import Response

from runvitals.server.access.actions import Action
from runvitals.server.access.permission import needs
from runvitals.server.artifacts.storage.run_lineage import Lineage
from runvitals.server.doors.mlflow.errors import invalid
from runvitals.server.doors.mlflow.experiments import TheExperiments
from runvitals.server.doors.mlflow.requests import (
    SentMessage,
    TheMessage,
    integer,
    mlflow_router,
    to_response,
)
from runvitals.server.doors.mlflow.run_search import DATASET_CONTEXT
from runvitals.server.doors.mlflow.runs import find_run
from runvitals.server.service_parameters import access_of
from runvitals.store.errors import LimitReached

_DATASET_FIELDS: Final = {
    "name": 500,
    "digest": 36,
    "source_type": 36,
    "source": 65_535,
    "schema": 1_048_575,
    "profile": 1 << 20,
}
"""The fields of a dataset, and how long each may be."""
_REQUIRED: Final = ("name", "digest", "source_type", "source")
_MAX_MODEL_ID: Final = 200
_MAX_EXPERIMENTS: Final = 20
_MAX_SUMMARIES: Final = 1000

router: Final = mlflow_router()


@router.post("/runs/log-inputs", needs("filtered run:create"))
def log_inputs(request: Request, sent: TheMessage) -> Response:
    """Store the datasets and models that a run uses."""
    run_id = _run_id(sent)
    datasets = [_dataset_input(SentMessage(dataset)) for dataset in sent.objects("datasets")]
    models = [{"model_id": _model_id(SentMessage(model))} for model in sent.objects("models")]
    return _add(request, run_id, Lineage(datasets=datasets, models=models))


@router.post("/runs/outputs", needs("filtered run:create"))
def log_outputs(request: Request, sent: TheMessage) -> Response:
    """Store the models that a run made, each with its step."""
    run_id = _run_id(sent)
    outputs = [
        {"model_id": _model_id(SentMessage(model)), "step": integer("step", model.get("step")) or 0}
        for model in sent.objects("models")
    ]
    return _add(request, run_id, Lineage(outputs=outputs))


def _run_id(sent: SentMessage) -> str:
    return sent.required("run_id", most=256)


def _add(request: Request, run_id: str, lineage: Lineage) -> Response:
    run = find_run(request, run_id, Action.RUN_CREATE)
    try:
        access_of(request).metadata_store.run_lineage.add(run.run_id, lineage)
    except LimitReached as error:
        raise invalid(str(error)) from None
    return to_response({})


def _model_id(sent: SentMessage) -> str:
    return sent.required("model_id", most=_MAX_MODEL_ID)


def _dataset_input(sent: SentMessage) -> dict[str, Any]:
    dataset = sent.values.get("dataset")
    if not isinstance(dataset, dict):
        raise invalid("Missing value for required parameter 'dataset'.")
    fields = SentMessage(dataset)
    texts = {name: text for name, most in _DATASET_FIELDS.items() if (text := fields.text(name, most=most))}
    for name in _REQUIRED:
        if name not in texts:
            raise invalid(f"Missing value for required parameter 'dataset.{name}'.")
    tags = [
        {"key": tag.required("key", most=255), "value": tag.text("value", most=500) or ""}
        for tag in map(SentMessage, sent.objects("tags"))
    ]
    return {"tags": tags, "dataset": texts}


@router.post("/experiments/search-datasets", needs("filtered run:read"))
def search_datasets(request: Request, sent: TheMessage, experiments: TheExperiments) -> Response:
    """Return the datasets that runs of some experiments used, without duplicates."""
    ids = sent.texts("experiment_ids")
    if not ids:
        raise invalid("SearchDatasets request must specify at least one experiment_id.")
    if len(ids) > _MAX_EXPERIMENTS:
        raise invalid(f"SearchDatasets request cannot specify more than {_MAX_EXPERIMENTS} experiment_ids")
    id_by_project = {
        experiment.id: experiments.id_of(experiment) for experiment in map(experiments.find, ids)
    }
    lineages = access_of(request).metadata_store.run_lineage.of_projects(id_by_project, _MAX_SUMMARIES)
    summaries: dict[tuple[str, str, str, str], None] = {}
    for project_id, lineage in lineages:
        for used in lineage.datasets:
            context = next((tag["value"] for tag in used["tags"] if tag["key"] == DATASET_CONTEXT), "")
            dataset = used["dataset"]
            summaries[id_by_project[project_id], dataset["name"], dataset["digest"], context] = None
    names = ("experiment_id", "name", "digest", "context")
    dataset_summaries = [
        dict(zip(names, summary, strict=True)) for summary in list(summaries)[:_MAX_SUMMARIES]
    ]
    return to_response({"dataset_summaries": dataset_summaries})
