"""Every route declares what it needs: nothing is open because somebody forgot it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import httpx
import pytest
from starlette.routing import Mount

from runvitals.server.access.actions import ACCOUNT, AUTHENTICATED, OWN_PASSWORD, PUBLIC, Action
from runvitals.server.access.decisions.matrix import ORGANISATION_MATRIX
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.doors import unknown_paths
from runvitals.server.http.router import Router
from tests.patience import PATIENCE_S
from tests.server.access.declared_routes import DeclaredRoute, declared_routes
from tests.server.access.organisation import NOW, ServedOrganisation
from tests.server.serving import serving

get = partial(httpx.get, timeout=PATIENCE_S)

PUBLIC_ROUTES = (
    "/healthz",
    "/readyz",
    "/health",
    "/version",
    "/api/v1/about",
    "/api/v1/catalogue",
    "/api/v1/findings/rules",
    "/api",
    "/api/{rest:path}",
    "/api/2.0/mlflow/server-info",
    "/api/2.0/mlflow/{rest:path}",
)
"""What shows nothing of anyone."""
CHECKED_BY_SECRET = (
    "/api/v1/auth/",
    "/api/v1/invitations/show",
    "/api/v1/mute/",
    "/api/v1/shared",
    "/scim/v2/",
    "/mlflow/signed/",
    "/-/image/",
    "/-/picture/",
    "/wandb/signed/",
)
"""Beginnings of paths of routes that are open to visitors because they check a secret of their own."""
RESOURCES = frozenset(("run", "report", "project", "team", "entity", "user"))


@pytest.fixture
def routes(served: ServedOrganisation) -> list[DeclaredRoute]:
    return list(declared_routes(served.served.app.api.routes))


def test_every_route_declares_one_permission(routes: list[DeclaredRoute]) -> None:
    assert len(routes) >= 28
    assert {str(route): route.permissions for route in routes if len(route.permissions) != 1} == {}


def test_there_is_no_route_besides_them_but_the_page(served: ServedOrganisation) -> None:
    others = [route for route in served.served.app.api.routes if not list(declared_routes([route]))]
    assert [type(route) for route in others] == [Mount]


def test_only_these_routes_are_public(routes: list[DeclaredRoute]) -> None:
    public = {route.path for route in routes if route.permission == PUBLIC}
    public -= {route.path for route in unknown_paths.router.routes}  # which say only that there is nothing
    assert {path for path in public if not path.startswith(CHECKED_BY_SECRET)} == set(PUBLIC_ROUTES)


def test_every_declared_action_can_be_decided(routes: list[DeclaredRoute]) -> None:
    for route in routes:
        if route.permission in (PUBLIC, ACCOUNT, AUTHENTICATED, OWN_PASSWORD):
            continue
        action = Action(route.action)
        of_path = action not in ORGANISATION_MATRIX and action.kind != "account"
        is_list = route.action != route.permission
        assert is_list or not of_path or route.parameters & RESOURCES, route


def test_a_route_without_a_permission_answers_nobody(tmp_path: Path) -> None:
    router = Router()

    @router.get("/api/v1/forgotten")
    def forgotten() -> str:
        return "a secret"

    with serving(tmp_path, routers=[router]) as served:
        assert get(f"{served.url}/api/v1/forgotten").text == '"a secret"'
        root = served.metadata_store.accounts.users.create("rita", CLI, NOW, org_role="admin")
        key, _ = served.metadata_store.accounts.keys.create("a", CLI, NOW, user_id=root.id)
        served.app.services.access.rights_changed()
        response = get(f"{served.url}/api/v1/forgotten", headers={"authorization": f"Bearer {key}"})
        assert response.status_code == 500
        assert "secret" not in response.text
