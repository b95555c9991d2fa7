"""`experiments/…`."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from runvitals.server.access.actions import Action
from runvitals.server.access.permission import needs
from runvitals.server.doors.mlflow.errors import (
    RESOURCE_DOES_NOT_EXIST,
    MlflowError,
    invalid,
)
from runvitals.server.doors.mlflow.experiments import (
    ACTIVE,
    DEFAULT_ID,
    DELETED,
    Experiments,
    TheExperiments,
)
from runvitals.server.doors.mlflow.limits import checked_tag, sent_tags
from runvitals.server.doors.mlflow.pages import max_results, page_of
from runvitals.server.doors.mlflow.requests import SentMessage, TheMessage, mlflow_router, to_response
from runvitals.server.doors.mlflow.search_text import (
    EXPERIMENT_ATTRIBUTES,
    Comparison,
    OrderBy,
    Value,
    parse_filter,
    parse_order,
)
from runvitals.server.doors.mlflow.storage.experiments import StoredExperiment

DEFAULT_PAGE: Final = 1000
MAX_PAGE: Final = 50_000
_STAGES: Final = {"ACTIVE_ONLY": (ACTIVE,), "DELETED_ONLY": (DELETED,), "ALL": (ACTIVE, DELETED)}
READS: Final = [needs("filtered project:read")]
# The body names the experiment; `Experiments.require` decides.
CHANGES: Final = [needs("filtered project:update")]

MAX_TAG: Final = 1 << 16
"""Characters of a value: MLflow's limit of 5,000 holds in its clients."""
router: Final = mlflow_router()


@router.post("/experiments/create", *CHANGES)
def create(sent: TheMessage, experiments: TheExperiments) -> Response:
    """Create an experiment, which is a project of ours."""
    tags: dict[str, str | None] = {**sent_tags(sent)}
    name = sent.required("name", most=100_000)
    location = sent.text("artifact_location", most=2048)
    if location and "#" in location:
        raise invalid("'artifact_location' URL can't include fragments or params.")
    experiment = experiments.create(name, location, tags)
    return to_response({"experiment_id": experiments.id_of(experiment)})


@router.get("/experiments/get", *READS)
def get(sent: TheMessage, experiments: TheExperiments) -> Response:
    """Return an experiment by its id."""
    experiment = experiments.find(sent.required_identifier("experiment_id"))
    return to_response({"experiment": experiments.as_json(experiment)})


@router.get("/experiments/get-by-name", *READS)
def get_by_name(sent: TheMessage, experiments: TheExperiments) -> Response:
    """Return an experiment by its name."""
    name = sent.required("experiment_name")
    experiment = experiments.named(name)
    if experiment is None:
        message = f"Could not find experiment with name '{name[:200]}'"
        raise MlflowError(RESOURCE_DOES_NOT_EXIST, message)
    return to_response({"experiment": experiments.as_json(experiment)})


@router.post("/experiments/search", *READS)
@router.get("/experiments/search", *READS)
def search(sent: TheMessage, experiments: TheExperiments) -> Response:
    """Return a page of the experiments that match a filter."""
    return _search(sent, experiments)


@router.get("/experiments/list", *READS)
def listed(sent: TheMessage, experiments: TheExperiments) -> Response:
    """Return a page of experiments to clients before 2.0."""
    return _search(sent, experiments)


def _search(sent: SentMessage, experiments: Experiments) -> Response:
    comparisons = parse_filter(sent.text("filter"), EXPERIMENT_ATTRIBUTES)
    order = parse_order(sent.texts("order_by"), EXPERIMENT_ATTRIBUTES)
    view = sent.identifier("view_type") or "ACTIVE_ONLY"
    stages = _STAGES.get({"1": "ACTIVE_ONLY", "2": "DELETED_ONLY", "3": "ALL"}.get(view, view))
    if stages is None:
        raise invalid(f"Invalid value {view[:60]} for parameter 'view_type' supplied.")
    most = max_results(sent.integer("max_results"), DEFAULT_PAGE, MAX_PAGE)
    unused = experiments.unused_default()
    matches = [
        (experiment, experiment_json)
        for experiment in (*experiments.all(), *([] if unused is None else [unused]))
        if (experiment_json := experiments.as_json(experiment))["lifecycle_stage"] in stages
        and all(
            comparison.holds(_value(experiment, experiment_json, comparison)) for comparison in comparisons
        )
    ]
    _sort(matches, order)
    page, following = page_of(matches, sent, most)
    more = {} if following is None else {"next_page_token": following}
    return to_response({"experiments": [experiment_json for _, experiment_json in page], **more})


def _value(
    experiment: StoredExperiment, experiment_json: dict[str, Any], comparison: Comparison | OrderBy
) -> Value | None:
    if comparison.kind == "tag":
        return experiment.tags.get(comparison.key)
    value: Value = experiment_json[comparison.key]
    return value


def _sort(matches: list[tuple[StoredExperiment, dict[str, Any]]], order: list[OrderBy]) -> None:
    """Sort experiments: the newest first, unless an order says otherwise; those without a value last."""
    matches.sort(key=lambda pair: (pair[1]["creation_time"], pair[0].id), reverse=True)
    for part in reversed(order):
        having = [pair for pair in matches if _value(*pair, part) is not None]
        without = [pair for pair in matches if _value(*pair, part) is None]

        def key(pair: tuple[StoredExperiment, dict[str, Any]], part: OrderBy = part) -> Any:
            return int(pair[1][part.key]) if part.key == "experiment_id" else _value(*pair, part)

        matches[:] = sorted(having, key=key, reverse=not part.ascending) + without


@router.post("/experiments/update", *CHANGES)
def update(sent: TheMessage, experiments: TheExperiments) -> Response:
    """Rename an experiment."""
    experiment = experiments.find_active(sent.required_identifier("experiment_id"), Action.PROJECT_UPDATE)
    name = sent.text("new_name", most=100_000)
    if name is not None:
        experiments.rename(experiment, name)
    return to_response({})


@router.post("/experiments/delete", *CHANGES)
def delete(sent: TheMessage, experiments: TheExperiments) -> Response:
    """Move an experiment to the trash."""
    experiment_id = sent.required_identifier("experiment_id")
    if experiment_id == DEFAULT_ID:
        raise invalid("the default experiment cannot be deleted")
    experiment = experiments.find(experiment_id, Action.PROJECT_DELETE)
    experiments.trash(experiment)
    return to_response({})


@router.post("/experiments/restore", *CHANGES)
def restore(sent: TheMessage, experiments: TheExperiments) -> Response:
    """Restore an experiment from the trash."""
    experiment = experiments.find(sent.required_identifier("experiment_id"), Action.PROJECT_DELETE)
    experiments.restore(experiment)
    return to_response({})


@router.post("/experiments/set-experiment-tag", *CHANGES)
def set_tag(sent: TheMessage, experiments: TheExperiments) -> Response:
    """Set a tag of an experiment."""
    experiment = experiments.find_active(sent.required_identifier("experiment_id"), Action.PROJECT_UPDATE)
    key, value = checked_tag(sent.required("key"), sent.text("value") or "", most_value=MAX_TAG)
    experiments.set_tags(experiment, {key: value})
    return to_response({})


@router.post("/experiments/delete-experiment-tag", *CHANGES)
@router.delete("/experiments/delete-experiment-tag", *CHANGES)
def delete_tag(sent: TheMessage, experiments: TheExperiments) -> Response:
    """Delete a tag of an experiment."""
    experiment = experiments.find_active(sent.required_identifier("experiment_id"), Action.PROJECT_UPDATE)
    key = sent.required("key")
    if key not in experiment.tags:
        raise MlflowError(
            RESOURCE_DOES_NOT_EXIST,
            f"No tag with name: {key[:100]} in experiment with id {experiments.id_of(experiment)}",
        )
    experiments.set_tags(experiment, {key: None})
    return to_response({})
