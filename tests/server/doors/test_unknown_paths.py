"""Paths that no route answers: an error in the form of the API that they would be part of, not the page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from google.rpc.status_pb2 import Status

from runvitals.model.account_names import RESERVED_NAMES
from runvitals.server.doors.otlp import paths as otlp_paths
from tests.patience import PATIENCE_S
from tests.server.access.declared_routes import declared_routes
from tests.server.serving import Served, serving

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("unknown")) as served:
        yield served


def ask(served: Served, method: str, path: str, **headers: str) -> httpx.Response:
    return httpx.request(method, served.url + path, headers=headers, timeout=PATIENCE_S)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("path", "is_text"),
    [
        ("/api", lambda body: body["error"]),
        ("/api/v1", lambda body: body["error"]),
        ("/api/v1/nothing/here", lambda body: body["error"]),
        ("/api/v3/x", lambda body: body["error"]),
        ("/files", lambda body: body["error"]),
        ("/files/a/b", lambda body: body["error"]),
        ("/artifactsV2/a", lambda body: body["error"]),
        ("/wandb", lambda body: body["error"]),
        ("/wandb/signed/nothing", lambda body: body["error"]),
        ("/graphql/", lambda body: body["errors"][0]["message"]),
        ("/otlp", lambda body: body["message"]),
        ("/otlp/v1/metrics/x", lambda body: body["message"]),
        ("/v1", lambda body: body["message"]),
        ("/v1/metric", lambda body: body["message"]),
        ("/prometheus", lambda body: body["error"]),
        ("/prometheus/api/v2/query", lambda body: body["error"]),
        ("/prometheus/api/v1/nothing", lambda body: body["error"]),
        ("/mlflow/signed/x", lambda body: body["message"]),
        ("/ajax-api/4.0/x", lambda body: body["message"]),
        ("/api/2.0/mlflow/nothing", lambda body: body["message"]),
        ("/api/2.0/mlflow-artifacts/nothing", lambda body: body["message"]),
        ("/get-artifact/x", lambda body: body["message"]),
        ("/scim", lambda body: body["detail"]),
        ("/scim/v2/Nothing", lambda body: body["detail"]),
    ],
)
def test_an_unknown_path_of_an_api_is_not_found(served: Served, method: str, path: str, is_text: Any) -> None:
    response = ask(served, method, path, **{"content-type": "application/json"})
    assert response.status_code == 404, response.text
    assert "json" in response.headers["content-type"]
    assert is_text(response.json())


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("DELETE", "/api/v1/runs", "GET"),
        ("GET", "/api/v1/auth/login", "POST"),
        ("GET", "/graphql", "POST"),
        ("PUT", "/files/a/b/c/file_stream", "GET, POST"),
    ],
)
def test_another_method_names_those_that_are_allowed(
    served: Served, method: str, path: str, allow: str
) -> None:
    response = ask(served, method, path, **{"content-type": "application/json"})
    assert (response.status_code, response.headers["allow"]) == (405, allow)
    assert f"only {allow} is allowed" in response.text


def test_senders_of_otlp_get_their_own_message(served: Served) -> None:
    response = ask(served, "POST", "/v1/nothing", **{"content-type": "application/x-protobuf"})
    assert response.status_code == 404
    assert "there is no /v1/nothing" in Status.FromString(response.content).message


@pytest.mark.parametrize("path", ["/", "/runs", "/team/project/runs/x", "/v12/x", "/filesystem", "/-/login"])
def test_the_page_answers_its_own_paths(served: Served, path: str) -> None:
    assert ask(served, "GET", path).headers["content-type"].startswith("text/")


def test_no_team_can_have_a_name_that_an_api_begins_with(served: Served) -> None:
    paths = {route.path for route in declared_routes(served.app.api.routes)}
    first = {path.split("/")[1].partition("{")[0].lower() for path in paths} | otlp_paths._FIRST_PARTS
    assert first - {"-"} <= RESERVED_NAMES
