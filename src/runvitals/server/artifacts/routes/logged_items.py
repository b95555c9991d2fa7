"""`/projects/{project}/datasets` and `…/logged-models`: what MLflow's clients log, and what used it."""

from __future__ import annotations

import math
from typing import Annotated, Any, Final

from fastapi import HTTPException, Path, Query, Request
from pydantic import Field

from runvitals.server.artifacts.lineage_walk import NodeKey
from runvitals.server.artifacts.routes.artifacts import READS, TheProjectNumber
from runvitals.server.artifacts.routes.lineage_models import DatasetNodeSchema, LineageSchema, ModelNodeSchema
from runvitals.server.artifacts.routes.lineage_response import Depth, lineage_response
from runvitals.server.artifacts.routes.readable_nodes import ReadableNodes
from runvitals.server.artifacts.storage.logged_items import ItemKind, LoggedItem
from runvitals.server.http.bodies import ResponseBody, page_body
from runvitals.server.http.listing import PageRequest, ThePage, stored_page
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess

_OWNED: Final = "/entities/{entity}/projects/{project}"
_PLAIN: Final = "/projects/{project:path}"
_MAX_WORDS: Final = 8
_MAX_METRICS: Final = 1000

DatasetNumber = Annotated[int, Path(ge=1, le=2**31 - 1, description="The id of a dataset.")]
ModelId = Annotated[str, Path(max_length=256, description="As MLflow's clients name it, such as `m-4f5e`.")]
Text = Annotated[str, Query(max_length=200, description="Every word of it occurs in what is listed.")]

router = Router()


class ListedDataset(DatasetNodeSchema):
    """A dataset with how much it is used."""

    runs: int = Field(description="Runs of the project that used it.")


DatasetsPage = page_body(
    "DatasetsPage", "A page of the datasets of a project, the newest first.", datasets=list[ListedDataset]
)


class ListedModel(ModelNodeSchema):
    """A logged model with how much it is used."""

    status: str
    runs: int = Field(description="Runs of the project that used it.")


LoggedModelsPage = page_body(
    "LoggedModelsPage",
    "A page of the logged models of a project, the newest first.",
    models=list[ListedModel],
)


class ModelMetricSchema(ResponseBody):
    """The newest value of a metric that a run measured of a logged model."""

    key: str
    value: float | str = Field(description="A number; one that JSON does not have as text, such as `NaN`.")
    run: str | None = Field(description="Null: it is in the trash, or in another project.")
    dataset: str = Field(description="The name of what it was measured on; empty: it is not known.")


class LoggedModelDetail(ModelNodeSchema):
    """A logged model."""

    status: str
    params: dict[str, str]
    tags: dict[str, str]
    metrics: list[ModelMetricSchema] = Field(description="The first 1000, by key.")


@router.get(_OWNED + "/datasets", *READS, response_model=DatasetsPage)
@router.get(_PLAIN + "/datasets", *READS, response_model=DatasetsPage)
def datasets(project: TheProjectNumber, page: ThePage, access: TheAccess, text: Text = "") -> Any:
    """The datasets that runs of a project used, the newest first."""
    return _listed("dataset", "datasets", project, page, access, text)


@router.get(_OWNED + "/datasets/{dataset}", *READS, response_model=DatasetNodeSchema)
@router.get(_PLAIN + "/datasets/{dataset}", *READS, response_model=DatasetNodeSchema)
def dataset(project: TheProjectNumber, dataset: DatasetNumber, access: TheAccess) -> Any:
    """A dataset: one name and digest in a project."""
    return _find("dataset", project, dataset, access).to_json()


@router.get(_OWNED + "/datasets/{dataset}/lineage", *READS, response_model=LineageSchema)
@router.get(_PLAIN + "/datasets/{dataset}/lineage", *READS, response_model=LineageSchema)
def dataset_lineage(
    request: Request, project: TheProjectNumber, dataset: DatasetNumber, access: TheAccess, depth: Depth = 4
) -> Any:
    """Show which runs used a dataset, and what they made."""
    return _lineage("dataset", _find("dataset", project, dataset, access), request, access, depth)


@router.get(_OWNED + "/logged-models", *READS, response_model=LoggedModelsPage)
@router.get(_PLAIN + "/logged-models", *READS, response_model=LoggedModelsPage)
def logged_models(project: TheProjectNumber, page: ThePage, access: TheAccess, text: Text = "") -> Any:
    """The models that runs of a project logged with MLflow, the newest first."""
    return _listed("model", "models", project, page, access, text)


@router.get(_OWNED + "/logged-models/{model}", *READS, response_model=LoggedModelDetail)
@router.get(_PLAIN + "/logged-models/{model}", *READS, response_model=LoggedModelDetail)
def logged_model(project: TheProjectNumber, model: ModelId, access: TheAccess) -> Any:
    """A logged model with its parameters, tags and newest metrics."""
    item = _find("model", project, model, access)
    store = access.metadata_store
    row = store.logged_models.get(model)
    if row is None:  # deleted a moment ago
        raise HTTPException(404, f"there is no model {model!r} in the project")
    metrics = store.logged_model_metrics.of_models([model])[:_MAX_METRICS]
    readable_uids = store.artifacts.logged_items.runs_among(project, (metric.run_uid for metric in metrics))
    return {
        **item.to_json(),
        "params": row.params,
        "tags": row.tags,
        "metrics": [
            {
                "key": metric.key,
                "value": metric.value if math.isfinite(metric.value) else str(metric.value),
                "run": metric.run_uid if metric.run_uid in readable_uids else None,
                "dataset": metric.dataset_name,
            }
            for metric in metrics
        ],
    }


@router.get(_OWNED + "/logged-models/{model}/lineage", *READS, response_model=LineageSchema)
@router.get(_PLAIN + "/logged-models/{model}/lineage", *READS, response_model=LineageSchema)
def logged_model_lineage(
    request: Request, project: TheProjectNumber, model: ModelId, access: TheAccess, depth: Depth = 4
) -> Any:
    """Show which run made a logged model, which used it, and which versions were registered from it."""
    return _lineage("model", _find("model", project, model, access), request, access, depth)


def _listed(
    kind: ItemKind, name: str, project: int, page: PageRequest, access: TheAccess, text: str
) -> dict[str, Any]:
    words = text.split()[:_MAX_WORDS]
    table = access.metadata_store.artifacts.logged_items
    rows, total = table.page(kind, project, words, page.after_id, page.limit)
    return stored_page(name, [{**item.to_json(), "runs": runs} for item, runs in rows], total, page)


def _find(kind: ItemKind, project: int, key: str | int, access: TheAccess) -> LoggedItem:
    item = access.metadata_store.artifacts.logged_items.find(kind, project, key)
    if item is None:
        raise HTTPException(404, f"there is no {kind} {key!r} in the project")
    return item


def _lineage(kind: ItemKind, item: LoggedItem, request: Request, access: TheAccess, depth: int) -> Any:
    start, nodes = NodeKey(kind, item.id), ReadableNodes(access, request)
    nodes.readable_of([start])
    return lineage_response(access.metadata_store.artifacts.lineage_graph, nodes, start, depth)
