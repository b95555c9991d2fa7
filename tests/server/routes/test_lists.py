"""Every list of accounts, teams and the organisation comes in pages: `?limit=&after=`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runvitals.server.accounts.storage.sessions import SessionLife
from runvitals.server.alerts.storage.destinations import SealedUrl
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.sign_on.storage.logins import ProviderIdentity
from runvitals.server.sweeps.storage.rows import Sweep
from runvitals.store.files.bucket_location import BucketLocation
from tests.patience import eventually
from tests.server.access.declared_routes import declared_routes
from tests.server.accounts_server import AccountsServer
from tests.server.database.artifacts.making import logged
from tests.server.projects.routes.conftest import add_run

NOT_LISTS = frozenset(
    (
        "/api/v1/account",
        "/api/v1/account/alerts",
        "/api/v1/account/deletion",
        "/api/v1/account/slack/callback",
        "/api/v1/account/usage",
        "/api/v1/organisation/audit/webhook",
        "/api/v1/organisation/mail",
        "/api/v1/organisation/slack-app",
        "/api/v1/account/profile",
        "/api/v1/entities/{entity}/projects/{project}/routing-rules",
        "/api/v1/account/second-factor",
        "/api/v1/auth/methods",
        "/api/v1/auth/second-factor",
        "/api/v1/auth/session",
        "/api/v1/auth/sudo",
        "/api/v1/entities/{entity}",
        "/api/v1/entities/{entity}/defaults",
        "/api/v1/entities/{entity}/projects/{project}",
        "/api/v1/entities/{entity}/alert-rules/{rule}",
        "/api/v1/entities/{entity}/projects/{project}/artifacts/{name}/{alias}",
        "/api/v1/entities/{entity}/projects/{project}/artifact-dependents",
        "/api/v1/entities/{entity}/projects/{project}/artifacts/{name}/{alias}/content",
        "/api/v1/entities/{entity}/projects/{project}/artifacts/{name}/{alias}/contents",
        "/api/v1/entities/{entity}/projects/{project}/artifacts/{name}/{alias}/lineage",
        "/api/v1/entities/{entity}/projects/{project}/sweeps/{sweep}",
        "/api/v1/organisation/scim-secret",
        "/api/v1/organisation/settings",
        "/api/v1/teams/{team}",
        "/api/v1/teams/{team}/alerts",
        "/api/v1/teams/{team}/automations/{automation}",
        "/api/v1/teams/{team}/profile",
        "/api/v1/teams/{team}/registries/{registry}",
        "/api/v1/teams/{team}/registries/{registry}/collections/{collection}",
        "/api/v1/teams/{team}/registries/{registry}/collections/{collection}/versions/{version}",
        "/api/v1/teams/{team}/registries/{registry}/collections/{collection}/versions/{version}/contents",
        "/api/v1/teams/{team}/registries/{registry}/collections/{collection}/versions/{version}/files/{path:path}",
        "/api/v1/teams/{team}/registries/{registry}/requests/{number}",
        "/api/v1/teams/{team}/registries/{registry}/receivers",
        # Of the organisation only: the lists of teams have the same functions.
        "/api/v1/teams/{team}/registries/{registry}/automations",
        "/api/v1/teams/{team}/registries/{registry}/automations/{automation}",
        "/api/v1/teams/{team}/registries/{registry}/automations/{automation}/history",
        "/api/v1/teams/{team}/settings",
        "/api/v1/teams/{team}/storage",
        "/api/v1/teams/{team}/usage",
        "/api/v1/users/{user}",
    )
)
"""What answers one thing."""
ROOTS = ("account", "auth", "entities", "organisation", "teams", "users")
FIXED = {
    "/api/v1/account/beta": "features that this version declares",
    "/api/v1/account/passkeys": "keys that a browser makes",
    "/api/v1/entities/{entity}/alert-rules/history": "rules that fired for running trainings",
    "/api/v1/teams/{team}/registries/{registry}/members": "of the organisation; a team's has none",
    "/api/v1/teams/{team}/registries/{registry}/teams": "of the organisation; a team's has none",
}
"""Lists that a test cannot make longer; they take the parameters too."""
HISTORY = "teams/vision/automations/1/history"


@pytest.fixture
def full(vision: AccountsServer) -> AccountsServer:
    """At least two rows in every list."""
    accounts, now_ms = vision.accounts, vision.clock()
    ada, olga = accounts.users.by_name("ada"), accounts.users.by_name("olga")
    for number, name in enumerate(("digits", "letters")):
        accounts.buckets.create(name, BucketLocation("s3", name), None, CLI, now_ms)
        add_run(vision, f"run-{number}", name, "ada")
        project = vision.metadata_store.projects.id(name)
        accounts.project_members.add(project, CLI, now_ms, user_id=ada.id)
        accounts.project_members.add(project, CLI, now_ms, user_id=accounts.users.by_name("bob").id)
        for _ in range(2):
            accounts.guest_links.create(CLI, now_ms, project_id=project)
            accounts.guest_links.create(
                CLI, now_ms, run_id=vision.metadata_store.runs.places("run-0")[0].run_id
            )
        accounts.teams.create(f"team-{name}", CLI, now_ms, administrator=ada.id)
        accounts.emails.add(ada.id, f"{name}@example.net", CLI, now_ms)
        accounts.keys.create(name, CLI, now_ms, user_id=ada.id)
        accounts.sessions.create(ada.id, now_ms, SessionLife(), method="password")
        accounts.roles.create(name, "viewer", [], "", CLI, now_ms)
        service = accounts.service_accounts.create(name, accounts.teams.by_name("vision").id, CLI, now_ms)
        accounts.service_accounts.create(
            name, None, CLI, now_ms, default_team_id=accounts.teams.by_name("vision").id
        )
        account = accounts.service_accounts.by_name("digits", accounts.teams.by_name("vision").id)
        accounts.keys.create(name, CLI, now_ms, service_account_id=account.id)
        of_all = accounts.service_accounts.by_name("digits", None)
        accounts.keys.create(name, CLI, now_ms, service_account_id=of_all.id)
        team_id = accounts.teams.by_name("vision").id
        accounts.team_secrets.put(team_id, name, b"sealed", CLI, now_ms)
        destinations, url = vision.metadata_store.alerts.destinations, SealedUrl(b"sealed", "…")._asdict()
        webhook = {"url": "https://ci.example", "enabled": True}
        destinations.create("webhook", team_id, name, webhook, CLI, now_ms)
        destinations.create("slack", team_id, name, url, CLI, now_ms)
        destinations.create("apprise", team_id, name, url, CLI, now_ms)
        accounts.invitations.create("vision", f"{name}@example.com", "member", CLI, now_ms)
        accounts.invitations.create(None, f"{name}@example.com", "member", CLI, now_ms)
        accounts.invitations.create(f"team-{name}", None, "member", CLI, now_ms, user_id=olga.id)
        issuer = accounts.jwt_issuers.create(name, f"https://{name}.example", "runvitals", CLI, now_ms)
        first = accounts.jwt_issuers.all()[0]
        accounts.jwt_issuers.assign(service.id, first.id, f"repo:{name}", CLI, now_ms)
        assert issuer.id >= first.id
        identity = ProviderIdentity(name, f"https://{name}.example", "7", name, None)
        accounts.logins.link(ada.id, identity, CLI, now_ms)
        user = vision.user(f"asks-{name}")
        accounts.join_requests.create("vision", user.id, "", CLI, now_ms)
    for name in ("team-digits", "team-letters"):
        accounts.teams.update(name, CLI, now_ms, join_domains=["example.org"], recommend_by_domain=True)
        accounts.join_requests.create(name, olga.id, "", CLI, now_ms)
    provider = {"label": "Sign in", "kind": "github", "client_id": "x"}
    providers = [{"id": name, **provider} for name in ("github", "other")]
    accounts.settings.put({"providers": providers}, CLI, now_ms)
    digits = vision.metadata_store.projects.id("digits")
    for name, content in (("mnist", b"1"), ("mnist", b"2"), ("faces", b"3")):
        logged(vision.metadata_store, digits, {"a": content, "b": b"0"}, name)
    add_registries(vision)
    rules, sweeps = "entities/vision/alert-rules", "entities/vision/projects/digits/sweeps"
    configuration = {"method": "random", "parameters": {"lr": {"min": 0.1, "max": 1.0}}}
    for rule in vision.ask("ada", "GET", rules)["ready"][:2]:
        vision.ask("ada", "POST", rules, 201, json={"rule": rule})
        vision.ask("ada", "POST", sweeps, 201, json={"configuration": configuration})
    runs = vision.metadata_store.sweeps.runs
    for name in ("run-0", "run-1"):
        runs.begin(newest_sweep(vision).id, name, vision.metadata_store.runs.places(name)[0].run_id, now_ms)
    for name in ("rates", "depths"):
        vision.ask("ada", "POST", "entities/vision/projects/digits/reports", 201, json={"title": name})
    mail = {"kind": "mail", "members": ["ada"]}
    for name in ("failed", "crashed"):
        event = {"kind": "run.state", "states": [name]}
        automation = {"name": name, "event": event, "actions": [mail]}
        vision.ask("ada", "POST", "teams/vision/automations", 201, json=automation)
        vision.ask("ada", "POST", "teams/vision/automations/1/test", 202)
    eventually(lambda: all(row["ended_ms"] for row in vision.ask("ada", "GET", HISTORY)["notifications"]))
    return vision


def add_registries(vision: AccountsServer) -> None:
    """Two registries; in `model`, two collections, versions, administrators and requests."""
    registries, linked = "teams/vision/registries", "teams/vision/registries/model/collections"
    for name in ("model", "other"):
        vision.ask("ada", "POST", registries, 201, json={"name": name})
    for collection, version in (("mnist", "v0"), ("mnist", "v1"), ("faces", "v0")):
        source = {"artifact": f"digits/{collection}", "version": version}
        vision.ask("ada", "POST", f"{linked}/{collection}/versions", 201, json=source)
    for name in ("ada", "bob"):
        vision.ask("ada", "PUT", f"{registries}/model/admins/{name}", 204)
    for alias in ("gold", "best"):
        vision.ask("ada", "PUT", f"{registries}/model/protected-aliases/{alias}", 204)
        vision.ask("ada", "POST", f"{linked}/mnist/requests", 201, json={"alias": alias, "version": 0})


def newest_sweep(vision: AccountsServer) -> Sweep:
    project = vision.metadata_store.projects.id("digits")
    return vision.metadata_store.sweeps.sweeps.of_project(project)[0][0]


def names_of(path: str) -> str:
    values = {
        "team": "vision",
        "entity": "vision",
        "project": "digits",
        "run": "run-0",
        "account": "digits",
        "issuer": "1",
        "automation": "1",
        "name": "mnist",
        "alias": "latest",
        "registry": "model",
        "collection": "mnist",
        "version": "latest",
    }
    for name, value in values.items():
        path = path.replace(f"{{{name}}}", value)
    return path.removeprefix("/api/v1/")


def test_every_list_comes_in_pages(full: AccountsServer) -> None:
    routes = [
        route
        for route in declared_routes(full.app.api.routes)
        if route.method == "GET"
        and route.path.startswith("/api/v1/")
        and route.path.split("/")[3] in ROOTS
        and route.path not in NOT_LISTS
        and "/auth/{provider}" not in route.path
    ]
    routes += [
        route
        for route in declared_routes(full.app.api.routes)
        if str(route).endswith("GET /api/v1/runs/{run}/links")
    ]
    assert len(routes) >= 28
    short = []
    with full.client("ada") as ada, full.client("olga") as olga:
        for route in routes:
            path = names_of(route.path).replace("{sweep}", newest_sweep(full).name)
            more = {"query": "as"} if path == "users" else {}

            def page(after: str | None, limit: int = 1, path: str = path, more: Any = more) -> Any:
                params = {"limit": limit, **more, **({} if after is None else {"after": after})}
                by = olga if path.startswith(("organisation", "account/invitations", "account/join")) else ada
                response = by.get(path, params=params)
                assert response.status_code == 200, f"{path}: {response.text}"
                return response.json()

            if check_list(path, page) < 2:
                short.append(route.path)
    assert set(short) == set(FIXED)


def check_list(path: str, page: Callable[..., Any]) -> int:
    """Walk a list one by one, and compare with all of it; returns how many rows it has."""
    whole = page(None, 200)
    assert {"total", "next"} <= whole.keys(), path
    [plural] = [
        name
        for name, value in whole.items()
        if isinstance(value, list) and name not in ("may", "permissions", "administrators", "ready")
    ]
    assert (whole["total"], whole["next"]) == (len(whole[plural]), None), path
    rows, after = [], None
    for _ in range(whole["total"]):
        part = page(after)
        assert part["total"] == whole["total"], path
        assert len(part[plural]) == 1, path
        rows += part[plural]
        after = part["next"]
    assert after is None, path
    assert rows == whole[plural], path
    return len(rows)


def test_a_cursor_that_no_page_has(full: AccountsServer) -> None:
    response = full.ask("ada", "GET", "account/sessions?after=x", 422)
    assert "expected `next` of the previous page" in response["error"]
    full.ask("ada", "GET", "account/sessions?limit=201", 422)
