"""Datasets and logged models of MLflow's client in the lineage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import mlflow
import numpy as np
import pytest
from mlflow.entities import LoggedModelInput, LoggedModelOutput
from mlflow.tracking import MlflowClient

from tests.patience import PATIENCE_S
from tests.server.artifacts.test_lineage import edges, named
from tests.server.serving import Served


@pytest.fixture(scope="module")
def runs(served: Served) -> Iterator[list[str]]:
    """The ids of a run that trains, one that judges its model, and one that only uses the dataset."""
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(served.url)
    mlflow.set_registry_uri(served.url)
    client, experiment = MlflowClient(), mlflow.set_experiment("lineage")
    rows = mlflow.data.from_numpy(np.arange(12.0), name="rows")
    found = []
    with mlflow.start_run(run_name="train") as train:
        mlflow.log_input(rows, context="training")
        model = mlflow.create_external_model("net", source_run_id=train.info.run_id)
        client.log_outputs(train.info.run_id, [LoggedModelOutput(model.model_id, 3)])
        found.append(train.info.run_id)
    client.create_registered_model("net")
    client.create_model_version("net", f"models:/{model.model_id}", model_id=model.model_id)
    with mlflow.start_run(run_name="judge") as judge:
        client.log_inputs(judge.info.run_id, models=[LoggedModelInput(model.model_id)])
        mlflow.log_metric("acc", 0.5, model_id=model.model_id, dataset=rows)
        found.append(judge.info.run_id)
    with mlflow.start_run(run_name="other") as other:
        mlflow.log_input(rows)
        found.append(other.info.run_id)
    assert experiment.experiment_id == client.get_run(found[0]).info.experiment_id
    yield found
    mlflow.set_tracking_uri(before)
    mlflow.set_registry_uri(before)


def lineage(served: Served, path: str) -> dict[str, Any]:
    response = httpx.get(f"{served.url}/api/v1{path}/lineage", timeout=PATIENCE_S)
    assert response.status_code == 200, response.text
    graph: dict[str, Any] = response.json()
    return graph


def test_from_a_run_to_its_dataset_and_models(served: Served, runs: list[str]) -> None:
    train, judge, other = runs
    graph = lineage(served, f"/runs/{train}")
    assert named(graph) == {train: 0, "rows": -1, "net": 1, "net:v1": 1, judge: 2}
    assert edges(graph) == {
        ("rows", train),
        (train, "net"),
        ("net", judge),
        ("net", "net:v1"),
        (train, "net:v1"),
        ("rows", judge),
    }
    dataset = next(node for node in graph["nodes"] if node["kind"] == "dataset")
    assert (dataset["dataset"]["project"], len(dataset["dataset"]["digest"])) == ("lineage", 8)
    assert (dataset["more_after"], other in named(graph)) == (True, False)
    assert set(named(lineage(served, f"/runs/{other}"))) == {other, "rows"}
