"""The matrix over HTTP: each route with a user for each outcome, and rows of permissions.csv with a route.

Refusals are checked for all routes. That something is allowed is checked for reads, and for the changes in
`REPEATABLE`: others would destroy what the next request needs.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from runvitals.server.access.actions import ACCOUNT, AUTHENTICATED, FILTERED, OWN_PASSWORD, PUBLIC, Action
from runvitals.server.access.decisions.decision import Decision
from runvitals.server.access.identification.identity import Credential
from runvitals.server.access.principals import Anonymous, Principal
from runvitals.server.access.resources import Organisation, Project, ProjectItem, Resource
from runvitals.server.audit.storage.audit import CLI
from tests.patience import PATIENCE_S
from tests.server.access.declared_routes import DeclaredRoute, declared_routes
from tests.server.access.organisation import NOW, OTHER_TEAM, TEAM, VISIBILITIES, ServedOrganisation

CSV: Final = Path(__file__).with_name("permissions.csv")
ROWS: Final = [row for row in csv.DictReader(CSV.read_text().splitlines()) if row["permission"]]
WHO: Final = {
    "view_only": "vera",
    "member": "carol",
    "team_admin": "alice",
    "org_admin": "oscar",
    "system_admin": "rita",
    "billing_admin": "rita",
    "signed_in": "otto",
    "former_member": "frank",
    "service_account": "ci",
    "self": "carol",
    "visitor": None,
}
REPEATABLE: Final[dict[str, dict[str, Any]]] = {
    "PATCH /api/v1/runs/{run}": {"json": {"notes": "x"}},
    "POST /api/v1/runs/{run}/stop": {},
    "GET /api/v1/runs/{run}/media/steps": {"params": {"key": "samples"}},
    "GET /api/v1/runs/{run}/media/records": {"params": {"key": "samples"}},
    "POST /api/v1/runs/{run}/restore": {},
    "DELETE /api/v1/runs/{run}": {},
    "PATCH /api/v1/projects/{project:path}": {},
    "DELETE /api/v1/projects/{project:path}": {},
}
"""What a request is sent with. Changes are undone or do no harm: a project gets its own name, projects
and runs are restored."""
REQUIRED: Final[dict[str, dict[str, Any]]] = {
    "GET /api/v1/runs/{run}/console/matches": {"params": {"words": "x"}},
    "GET /api/v1/runs/{run}/differences": {"params": {"t0": 0, "t1": 1}},
}
"""Parameters without which a read is not valid."""
WITH_BODY: Final = (
    "POST /api/v1/runs/{run}/links",
    "POST /api/v1/runs/{run}/move",
)
"""What is sent only by those who may not do it: it needs a body, which is checked after the rights."""
SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "no links": {"allow_public_links": False},
    "anonymous_read": {"anonymous_access": "read"},
    "members_create_teams": {"team_creation": "members"},
    "team_admins_edit_privacy": {"team_admins_edit_privacy": True},
}
NARROWER: Final = (
    "GET /api/v1/runs/{run}/links",
    "POST /api/v1/runs/{run}/links",
    "DELETE /api/v1/runs/{run}/links/{link}",
    "POST /api/v1/runs/{run}/files",
    "POST /api/v1/runs/{run}/small-files",
    "PUT /api/v1/runs/{run}/files/{sha256}",
    "GET /api/v1/entities/{entity}/projects/{project}/members",
    "PATCH /api/v1/entities/{entity}/projects/{project}",
)
"""Routes that declare that the run or project is readable, and check more themselves: that the project may be
shared, that the requester is in its team, that the run is the requester's or may be changed, or a
right for each field that is changed."""
REFUSED: Final = (401, 403, 404, 428)
USERS: Final = (None, "otto", "vera", "carol", "bob", "alice", "rita", "ci", "frank")


class Walk:
    """Sends requests as users of the organisation, and undoes what they change."""

    def __init__(self, served: ServedOrganisation, client: httpx.Client) -> None:
        self.served = served
        self.client = client
        self.sessions = {name: served.sign_in(name) for name in served.users}
        self.principals = {who: self._principal(who) for who in USERS}
        self.routes = [
            route
            for route in declared_routes(served.served.app.api.routes)
            if route.permission not in (PUBLIC, AUTHENTICATED, OWN_PASSWORD) and str(route) not in NARROWER
        ]

    def ask(self, who: str | None, route: DeclaredRoute, path: str) -> httpx.Response:
        headers: dict[str, str] = {}
        if who in self.sessions:
            headers = {"cookie": f"runvitals_session={self.sessions[who]}", "sec-fetch-site": "same-origin"}
        elif who is not None:
            headers = self.served.headers(who)
        how = REPEATABLE.get(str(route)) or REQUIRED.get(str(route), {})
        if str(route) == "PATCH /api/v1/projects/{project:path}":
            how = {"json": {"name": path.rpartition("/")[2]}}
        if route.method != "GET":
            headers["content-type"] = "application/json"
        with self.client.stream(route.method, path, headers=headers, **how) as response:
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                response.read()
        if route.method == "DELETE" and response.status_code < 300:
            if "project" in route.parameters:
                number = self.served.metadata_store.projects.id(path.rpartition("/")[2])
                self.served.accounts.owned_projects.restore(number, CLI, NOW)
                self.served.served.app.services.access.rights_changed()
            self._restore_runs()
        return response

    def _principal(self, who: str | None) -> Principal:
        if who is None:
            return Anonymous()
        kind = "session" if who in self.sessions else "key"
        secret = self.sessions.get(who) or self.served.keys[who]
        identity = self.served.served.app.services.access.directory.identify(Credential(kind, secret))
        assert identity is not None
        return identity.principal

    def run(self, uid: str) -> ProjectItem:
        (run_place,) = self.served.metadata_store.runs.places(uid)
        return ProjectItem(
            "run",
            run_place.run_id,
            self.served.served.app.services.access.directory.project(run_place.project_id),
            run_place.author_id,
            run_place.service_account_id,
            run_place.deleted,
        )

    def project(self, name: str) -> Project:
        store = self.served.metadata_store
        return self.served.served.app.services.access.directory.project(store.projects.id(name))

    def _restore_runs(self) -> None:
        store = self.served.metadata_store
        for number in store.runs.trashed_before(NOW * 2):
            row = store.runs.get([number], NOW)[number]
            if row.uid != "deleted-bob":
                store.runs.restore([number], NOW)

    @contextmanager
    def switched(self, switch: str) -> Iterator[None]:
        """A setting on which a right depends, while it is on."""
        accounts = self.served.accounts
        if switch == "members_invite":
            accounts.teams.update(TEAM, CLI, NOW, members_invite=True)
        elif switch == "added":
            project_id = self.served.metadata_store.projects.id("restricted")
            for name in ("vera", "carol", "alice"):
                accounts.project_members.add(project_id, CLI, NOW, user_id=self.served.users[name])
        else:
            accounts.settings.put(SETTINGS[switch], CLI, NOW)
        self.served.rights_changed()
        try:
            yield
        finally:
            if switch == "members_invite":
                accounts.teams.update(TEAM, CLI, NOW, members_invite=False)
            elif switch == "added":
                for name in ("vera", "carol", "alice"):
                    accounts.project_members.remove(project_id, CLI, NOW, user_id=self.served.users[name])
            else:
                accounts.settings.put(dict.fromkeys(SETTINGS[switch]), CLI, NOW)
            self.served.rights_changed()


@pytest.fixture(scope="module")
def walk(served: ServedOrganisation) -> Iterator[Walk]:
    served.users["frank"] = served.accounts.users.create("frank", CLI, NOW).id
    # rita is the first administrator, and so a billing administrator too.
    served.users["oscar"] = served.accounts.users.create("oscar", CLI, NOW, org_role="admin").id
    served.accounts.members.add(TEAM, "frank", "member", CLI, NOW)
    served.accounts.members.remove(TEAM, "frank", CLI, NOW)
    served.rights_changed()
    with httpx.Client(base_url=served.url, timeout=PATIENCE_S) as client:
        yield Walk(served, client)


def path_of(route: DeclaredRoute, on: str, own: bool) -> str | None:
    """The path of a route for what a row of the specification is on; None if the route is about others."""
    if on.split()[-1] == "account" and "user" not in route.parameters and not own:
        return None  # it names no account: it is about the requester's own
    elsewhere = "another team" in on
    level = next((level for level in VISIBILITIES if on.startswith(level)), "team")
    author = "carol" if own else "bob"
    values = {
        "run": "voice-otto" if elsewhere else f"{level}-{author}",
        "project": "voice" if elsewhere else level,
        "entity": OTHER_TEAM if elsewhere else TEAM,
        "team": OTHER_TEAM if elsewhere else TEAM,
        "user": "carol",
        "member": "alice" if on == "admin member" else "bob",
    }
    path = route.path.replace(":path", "")
    for name in route.parameters:
        if name not in values:
            return None
        path = path.replace(f"{{{name}}}", values[name])
    return path


def pairs(row: dict[str, str]) -> list[tuple[str, str]]:
    permissions = row["permission"].split()
    if len(permissions) == 1:
        return [(permissions[0], row["on"])]
    resources = row["on"].split(";") if ";" in row["on"] else row["on"].split()
    return [
        (permission, run_place.strip())
        for permission, run_place in zip(permissions, resources * 4, strict=False)
    ]


def routes_of(walk: Walk, row: dict[str, str]) -> list[tuple[DeclaredRoute, str]]:
    return [
        (route, on)
        for permission, on in pairs(row)
        for route in walk.routes
        if route.permission == permission and on.split()[-1] in (*route.parameters, "organisation", "account")
    ]


def test_every_cell_of_the_specification_that_has_a_route(walk: Walk) -> None:
    checked = 0
    for row in ROWS:
        if row["role"] not in WHO or "without links" in row["on"]:
            continue
        for route, on in routes_of(walk, row):
            checked += check_cell(walk, row, route, on)
    assert checked >= 150


def check_cell(walk: Walk, row: dict[str, str], route: DeclaredRoute, on: str) -> int:
    """Check one route for a row; returns how many requests were sent."""
    decided, who = row["decided"], WHO[row["role"]]
    sent = 0
    for own in (True, False):
        path = path_of(route, on, own)
        if path is None or (own and who != "carol"):
            continue
        allowed = decided == "yes" or (decided == "own" and own)
        with ExitStack() as switches:
            if decided.startswith("if "):
                response = walk.ask(who, route, path)
                assert response.status_code in REFUSED, (row, str(route), path, response.status_code)
                switches.enter_context(walk.switched(decided[3:]))
                allowed = True
            if allowed and route.method != "GET" and str(route) not in REPEATABLE:
                continue
            response = walk.ask(who, route, path)
            sent += 1
            refused = response.status_code in REFUSED
            assert refused is not allowed, (row, str(route), path, response.status_code, response.text[:200])
            assert response.status_code < 500, (row, str(route), response.text[:200])
    return sent


RUNS: Final = (*(f"{level}-{name}" for level in VISIBILITIES for name in ("bob", "carol")), "team-ci")
OTHER_RUNS: Final = ("voice-otto", "deleted-bob")
AUTHORS: Final = ("carol", "bob")


def test_every_route_of_a_run_answers_as_decided(walk: Walk) -> None:
    for route in walk.routes:
        if route.parameters != {"run"} or route.permission in (ACCOUNT,):
            continue
        for number, uid in enumerate((*RUNS, *OTHER_RUNS)):
            if uid == "deleted-bob" and route.path.endswith("/restore"):
                continue  # it would be restored
            resource: Resource = walk.run(uid)
            if Action(route.permission).kind == "project":
                if uid in OTHER_RUNS:
                    continue  # who may not read the run may not know of it, whatever they may in its project
                resource = walk.run(uid).project
            # To others, the runs of bob and of carol are the same.
            users = AUTHORS if uid.endswith("-carol") else USERS
            for who in one_for_each_outcome(walk, users, route, resource, number):
                principal = walk.principals[who]
                allowed = decided(walk, principal, route, resource) is Decision.ALLOWED
                if allowed and str(route) in WITH_BODY:
                    continue
                response = walk.ask(who, route, route.path.replace("{run}", uid))
                check_decision(walk, principal, route, uid, resource, response)


def test_every_route_of_a_project_answers_as_decided(walk: Walk) -> None:
    for route in walk.routes:
        if route.parameters != {"project"}:
            continue
        for number, name in enumerate((*VISIBILITIES, "voice")):
            path, project = route.path.replace("{project:path}", name), walk.project(name)
            for who in one_for_each_outcome(walk, USERS, route, project, number):
                response = walk.ask(who, route, path)
                check_decision(walk, walk.principals[who], route, name, project, response)


def one_for_each_outcome(
    walk: Walk, users: tuple[str | None, ...], route: DeclaredRoute, resource: Resource, turn: int
) -> list[str | None]:
    """Select one of the users for each way in which the server responds; all of them take turns.

    `tests/server/accounts` has who gets which."""
    groups: dict[tuple[bool, Decision], list[str | None]] = {}
    for who in users:
        decision = decided(walk, walk.principals[who], route, resource)
        groups.setdefault((who is None, decision), []).append(who)
    return [group[turn % len(group)] for group in groups.values()]


@pytest.mark.parametrize("who", USERS, ids=str)
def test_every_route_of_the_organisation_answers_as_decided(walk: Walk, who: str | None) -> None:
    principal = walk.principals[who]
    for route in walk.routes:
        if not route.path.startswith("/api/v1/organisation") or route.permission == ACCOUNT:
            continue
        decision = decided(walk, principal, route, Organisation())
        if decision is Decision.ALLOWED and route.method != "GET":
            continue
        path = path_of(route, "organisation", own=False)
        if path is not None:
            check_decision(walk, principal, route, "", Organisation(), walk.ask(who, route, path))


def decided(walk: Walk, principal: Principal, route: DeclaredRoute, resource: Resource) -> Decision:
    return walk.served.served.app.services.access.directory.decide(
        principal, Action(route.permission), resource
    )


def check_decision(
    walk: Walk,
    principal: Principal,
    route: DeclaredRoute,
    name: str,
    resource: Resource,
    response: httpx.Response,
) -> None:
    decision = decided(walk, principal, route, resource)
    what = (principal, str(route), name, decision, response.status_code)
    if decision is Decision.ALLOWED:
        in_trash = isinstance(resource, ProjectItem) and resource.deleted
        if route.method != "GET" and str(route) not in REPEATABLE:
            assert response.status_code == 422, what  # the right was there, the body was not
            return
        expected = (404,) if in_trash else (200, 409)
        assert response.status_code in expected, what
        assert not in_trash or "is in the trash" in response.text, what
    elif isinstance(principal, Anonymous):
        assert response.status_code == 401, what
    elif decision is Decision.DENIED:
        assert response.status_code == 403, what
        assert response.json()["error"].startswith("you may not "), what
    else:
        assert response.status_code == 404, what
        assert response.json()["error"].startswith("there is no "), what


@pytest.mark.parametrize("who", ["otto", "rita", "frank", None], ids=str)
def test_what_may_not_be_known_answers_as_what_does_not_exist(walk: Walk, who: str | None) -> None:
    """By each parameter of each route: another team's against one that does not exist."""
    secrets = {"run": "team-bob", "project": "team", "team": TEAM, "entity": TEAM, "user": "carol"}
    checked = 0
    for route in walk.routes:
        for name in sorted(route.parameters & secrets.keys()):
            if route.permission in (ACCOUNT, AUTHENTICATED) or route.permission.startswith(FILTERED):
                continue
            if who == "rita" and name in ("team", "entity", "user"):
                continue  # administrators of the organisation know all teams and users
            responses = []
            for value in (secrets[name], "x" * len(secrets[name])):
                path = filled(route, {**secrets, name: value})
                response = walk.ask(who, route, path)
                responses.append((response.status_code, response.text.replace(value, "NAME")))
            if responses[0][0] not in (401, 404):
                continue  # who may know of it: the team of the service account, its public profile
            assert responses[0] == responses[1], (str(route), name)
            checked += 1
    assert checked >= (10 if who in ("otto", None) else 0)


def filled(route: DeclaredRoute, values: dict[str, str]) -> str:
    path = route.path.replace(":path", "")
    for name in route.parameters:
        path = path.replace(f"{{{name}}}", values.get(name, "1"))
    return path


def test_a_key_of_one_team_knows_no_more_of_others_than_a_stranger(walk: Walk) -> None:
    """A member of two teams, with a key limited to one of them, against somebody who is only in that one."""
    served = walk.served
    accounts = served.accounts
    accounts.members.add(OTHER_TEAM, "bob", "member", CLI, NOW)
    limits: dict[str, Any] = {"scope": "full", "entities": [accounts.teams.by_name(OTHER_TEAM).id]}
    limited, _ = accounts.keys.create("limited", CLI, NOW, user_id=served.users["bob"], **limits)
    stranger, _ = accounts.keys.create("stranger", CLI, NOW, user_id=served.users["otto"], scope="full")
    served.rights_changed()
    names = {"run": "team-bob", "project": "team", "team": TEAM, "entity": TEAM}
    routes = [route for route in walk.routes if route.parameters & names.keys()]
    different = {}
    with httpx.Client(base_url=served.url, timeout=PATIENCE_S) as client:
        for route in routes:
            path, statuses = filled(route, names), []
            for key in (limited, stranger):
                headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
                with client.stream(route.method, path, headers=headers) as response:
                    statuses.append(response.status_code)
            if statuses[0] == 403 and statuses[1] == 404:
                different[str(route)] = statuses
    accounts.members.remove(OTHER_TEAM, "bob", CLI, NOW)
    served.rights_changed()
    assert len(routes) > 30
    assert different == {}
