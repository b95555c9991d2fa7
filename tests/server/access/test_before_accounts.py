"""Until the first administrator exists, a server takes and shows runs, and nothing can be prepared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from runvitals.server.access.actions import NO_ADMINISTRATOR
from runvitals.server.doors import unknown_paths
from tests.patience import PATIENCE_S
from tests.server.access.declared_routes import DeclaredRoute, declared_routes
from tests.server.serving import Served, serving

FOR_RUNS = (
    "/healthz",
    "/readyz",
    "/metrics",
    "/health",
    "/version",
    "/api/{rest:path}",
    "/api/v1/about",
    "/api/v1/openapi.json",
    "/api/v1/findings/rules",
    "/api/v1/lost-hours",
    "/api/v1/artifacts",
    "/api/v1/auth/methods",
    "/api/v1/auth/login",
    "/api/v1/auth/session",
    "/api/v1/auth/setup",
    "/api/v1/auth/device",
    "/api/v1/catalogue",
    "/api/v1/account/api-keys/current",
    "/api/v1/projects",
    "/api/v1/entities/{entity}/projects",
    "/api/v1/runs",
    "/api/v1/fields",
    "/api/v1/defined-metrics",
    "/api/v1/overlay",
    "/api/v1/latest",
    "/api/v1/aggregate",
    "/api/v1/hosts",
    "/api/v1/compare",
    "/api/v1/views",
    "/api/v1/write",
    "/api/v1/client-links",
    "/api/v1/usage",
    "/api/v1/storage",
    "/prometheus",
    "/graphql",
    "/files",
    "/wandb",
    "/artifactsV2",
    "/api/2.0/mlflow",
    "/mlflow",
    "/get-artifact",
    "/model-versions",
    "/ajax-api",
)
"""Beginnings of the paths of routes that send, read and tidy up runs, and of those that set the server up."""
ABOUT_ACCESS = (
    "/organisation",
    "/scim/v2/",
    "/teams",
    "/invitations",
    "/members",
    "/links",
    "/transfer",
    "/join",
    "/alert-rules",
    "/account/alerts",
    "/automations",
    "/auth/signup",
    "/auth/reset",
    "/mute",
)
"""Parts of the paths of routes that decide who may do what, or who is told what."""
READS = ("GET /api/v1/entities/{entity}/projects/{project}/members",)


@pytest.fixture(params=[False, True], ids=["open", "tokens"])
def fresh(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Served, httpx.Client]]:
    """A server without an administrator, and a client that may do all that one allows."""
    with serving(tmp_path, token_required=request.param) as served:
        secret, _ = served.metadata_store.tokens.create("laptop", 0)
        headers = {"authorization": f"Bearer {secret}"}
        with httpx.Client(base_url=served.url, headers=headers, timeout=PATIENCE_S) as client:
            yield served, client


def address(route: DeclaredRoute) -> str:
    path = route.path
    for parameter in route.parameters:
        path = path.replace(f"{{{parameter}:path}}", "lab").replace(f"{{{parameter}}}", "lab")
    return path


def test_it_answers_only_about_runs(fresh: tuple[Served, httpx.Client]) -> None:
    served, client = fresh
    unknown = set(declared_routes(unknown_paths.router.routes))
    for route in declared_routes(served.app.api.routes):
        if route.method == "OPTIONS" or route.path.endswith("/live"):
            continue
        response = client.request(route.method, address(route), json={})
        if any(part in route.path for part in ABOUT_ACCESS) and str(route) not in READS:
            assert (response.status_code, NO_ADMINISTRATOR in response.text) == (403, True), route
        figures = route.method == "GET" and route.path.startswith(("/api/v1/account", "/api/v1/billing"))
        if not (route.path.startswith(FOR_RUNS) or figures or route in unknown or route.path == "/api"):
            assert (response.status_code, NO_ADMINISTRATOR in response.text) == (403, True), route


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/v1/organisation/scim-secret", {}),
        ("PUT", "/api/v1/organisation/audit/webhook", {"url": "https://evil.example"}),
        ("PUT", "/api/v1/organisation/settings", {"signup": "open"}),
        ("POST", "/api/v1/organisation/roles", {"name": "spy", "base": "viewer", "permissions": []}),
        ("POST", "/api/v1/organisation/invitations", {"people": ["eve@evil.example"], "org_role": "admin"}),
        ("POST", "/api/v1/teams", {"name": "main"}),
        ("POST", "/api/v1/teams/main/invitations", {"people": ["eve@evil.example"], "role": "admin"}),
        ("POST", "/api/v1/auth/signup", {"name": "eve", "email": "eve@evil.example", "password": "x" * 20}),
        ("GET", "/api/v1/organisation/settings", None),
        ("GET", "/api/v1/organisation/members", None),
        ("POST", "/scim/v2/Users", {"userName": "eve"}),
    ],
)
def test_nothing_can_be_planted(
    fresh: tuple[Served, httpx.Client], method: str, path: str, body: object
) -> None:
    _, client = fresh
    response = client.request(method, path, json=body)
    assert response.status_code == 403
    assert NO_ADMINISTRATOR in response.text
