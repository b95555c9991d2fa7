"""Where the addresses lead that clients of wandb and MLflow print."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.patience import PATIENCE_S
from tests.server.doors.wandb.conftest import UPSERT
from tests.server.serving import Served, serving


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("links")) as served:
        for project in ("digits", "cars"):
            variables = {"name": "same", "project": project, "entity": "main", "host": "node1"}
            body = {"query": UPSERT, "variables": variables}
            response = httpx.post(f"{served.url}/graphql", json=body, timeout=PATIENCE_S)
            assert "errors" not in response.json()
        yield served


def leads(served: Served, client: str, **parameters: Any) -> Any:
    """Project and run of an address; or the status."""
    url = f"{served.url}/api/v1/client-links/{client}"
    response = httpx.get(url, params=parameters, timeout=PATIENCE_S)
    body = response.json()
    return (body["project"], body["run"]) if response.status_code == 200 else response.status_code


def test_runs_of_wandb_with_the_same_id_in_two_projects(served: Served) -> None:
    assert leads(served, "wandb", entity="main", project="digits", run="same") == ("digits", "same")
    project, run = leads(served, "wandb", entity="main", project="cars", run="same")
    assert (project, run.startswith("same-")) == ("cars", True)
    assert leads(served, "wandb", entity="main", project="cars") == ("cars", None)
    assert leads(served, "wandb", entity="main", project="cars", run="other") == 404
    assert leads(served, "wandb", entity="main", project="none", run="same") == 404


def test_experiments_and_runs_of_mlflow(served: Served) -> None:
    api = f"{served.url}/api/2.0/mlflow"
    experiment = httpx.post(
        f"{api}/experiments/create", json={"name": "of mlflow"}, timeout=PATIENCE_S
    ).json()
    number = experiment["experiment_id"]
    begun = httpx.post(f"{api}/runs/create", json={"experiment_id": number}, timeout=PATIENCE_S).json()
    uid = begun["run"]["info"]["run_id"]
    assert leads(served, "mlflow", experiment=number) == ("of mlflow", None)
    assert leads(served, "mlflow", experiment=number, run=uid) == ("of mlflow", uid)
    assert leads(served, "mlflow", experiment=number, run="none") == 404
    assert leads(served, "mlflow", experiment="999") == 404
