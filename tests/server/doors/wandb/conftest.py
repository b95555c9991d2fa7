"""A server that wandb clients log to."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.patience import PATIENCE_S, eventually
from tests.server.serving import Served, serving

UPSERT = """mutation UpsertBucket($id: String, $name: String, $project: String, $entity: String,
    $groupName: String, $displayName: String, $notes: String, $config: JSONString, $host: String,
    $jobType: String, $tags: [String!], $summaryMetrics: JSONString, $sweep: String) {
  upsertBucket(input: {id: $id, name: $name, modelName: $project, entityName: $entity, groupName: $groupName,
      displayName: $displayName, notes: $notes, config: $config, host: $host, jobType: $jobType, tags: $tags,
      summaryMetrics: $summaryMetrics, sweep: $sweep}) {
    bucket { id name displayName description config sweepName historyLineCount
      project { id name entity { id name } } }
    inserted } }"""
_numbers = count(1)


class Door:
    """A client's requests, and what the server then has."""

    def __init__(self, served: Served, run: str) -> None:
        self.served = served
        self.run = run

    def graphql(self, query: str, headers: dict[str, str] | None = None, **variables: Any) -> Any:
        """The response to an operation."""
        body = {"query": query, "variables": variables}
        url = f"{self.served.url}/graphql"
        return httpx.post(url, json=body, headers=headers, timeout=PATIENCE_S).json()

    def begin(self, headers: dict[str, str] | None = None, **sent: Any) -> Any:
        """Begin the run; returns what the client gets."""
        sent = {"name": self.run, "project": "digits", "entity": "main", "host": "node1", **sent}
        response = self.graphql(UPSERT, headers, **sent)
        assert "errors" not in response, response
        return response["data"]["upsertBucket"]

    def shown(self, path: str = "", **parameters: Any) -> Any:
        """The run as the API shows it."""
        url = f"{self.served.url}/api/v1/runs/{self.run}{path}"
        response = httpx.get(url, params=parameters, timeout=PATIENCE_S)
        assert response.status_code == 200, response.text
        return response.json()

    def becomes(self, state: str) -> None:
        """Wait until the run is in a state: what the API shows may be a quarter of a second old."""
        eventually(lambda: self.shown()["state"] == state)


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("wandb")) as served:
        yield served


@pytest.fixture
def folder_of_uploads(served: Served) -> Path:
    """The folder of files while they arrive."""
    return Path(served.app.services.files._folder) / "uploads"


@pytest.fixture
def door(served: Served) -> Door:
    """A client with a run of its own."""
    return Door(served, f"run{next(_numbers)}")
