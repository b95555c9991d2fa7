"""Errors that come before or after a door have the form that its clients read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from runvitals.server.access import control
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.http.error_forms import error_response
from tests.patience import PATIENCE_S
from tests.server.serving import Served, serving

NOW = 1_800_000_000_000


@pytest.mark.parametrize(
    ("path", "status", "body"),
    [
        ("/api/v1/runs", 429, {"error": "wait"}),
        ("/files/a/b/c/file_stream", 503, {"error": "wait"}),
        ("/graphql", 429, {"data": None, "errors": [{"message": "wait"}]}),
        ("/api/2.0/mlflow/runs/get", 401, {"error_code": "UNAUTHENTICATED", "message": "wait"}),
        ("/ajax-api/3.0/mlflow/runs", 429, {"error_code": "REQUEST_LIMIT_EXCEEDED", "message": "wait"}),
        ("/api/2.0/mlflow-artifacts/x", 503, {"error_code": "TEMPORARILY_UNAVAILABLE", "message": "wait"}),
        ("/prometheus/api/v1/query", 503, {"status": "error", "errorType": "unavailable", "error": "wait"}),
        ("/prometheus/api/v1/query", 405, {"status": "error", "errorType": "bad_data", "error": "wait"}),
    ],
)
def test_forms(path: str, status: int, body: dict[str, Any]) -> None:
    response = error_response(path, status, "wait", {"retry-after": "1"})
    assert (response.status_code, response.headers["retry-after"]) == (status, "1")
    assert json.loads(bytes(response.body)) == body


@pytest.mark.parametrize("path", ["/api/v1/write", "/prometheus/api/v1/write", "/prometheus/federate"])
def test_senders_of_prometheus_get_a_line_of_text(path: str) -> None:
    assert bytes(error_response(path, 429, "wait").body) == b"wait\n"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    """A server with accounts in which too many requests wait, and a key."""
    patch = pytest.MonkeyPatch()
    with serving(tmp_path_factory.mktemp("waiting"), clock=lambda: NOW) as served, patch.context() as patched:
        accounts = served.metadata_store.accounts
        user = accounts.users.create("ada", CLI, NOW, org_role="admin", verified=True)
        key, _ = accounts.keys.create("k", CLI, NOW, user_id=user.id)
        served.app.services.access.rights_changed()
        patched.setattr(control, "_MAX_WAITING", -1)
        yield served, key


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/graphql"),
        ("POST", "/files/ada/digits/r/file_stream"),
        ("POST", "/api/2.0/mlflow/runs/log-batch"),
        ("GET", "/api/2.0/mlflow-artifacts/artifacts"),
        ("GET", "/prometheus/api/v1/labels"),
        ("GET", "/api/v1/runs"),
    ],
)
def test_a_server_with_too_much_to_do(served: tuple[Served, str], method: str, path: str) -> None:
    server, key = served
    for secret, status in ((key, 503), ("x" * 40, 401)):
        response = httpx.request(method, server.url + path, auth=("api", secret), timeout=PATIENCE_S)
        assert response.status_code == status
        assert ("retry-after" in response.headers) == (status == 503)
        assert response.json().keys() == json.loads(bytes(error_response(path, status, "").body)).keys()
