"""Every row of permissions.csv over HTTP: who may do something gets it done, who may not is refused.

`test_matrix.py` sends requests of all routes; this sends one request for each cell, with a body that is
valid, and undoes what it did.
"""

from __future__ import annotations

import csv
import hashlib
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import httpx
import pytest

from runvitals.server.artifacts.storage.protection import Changer
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.files.received_files import ReceivedFiles
from runvitals.server.projects.storage.projects import ProjectOwner
from tests.patience import PATIENCE_S
from tests.server.access.declared_routes import declared_routes
from tests.server.access.organisation import NOW, OTHER_TEAM, TEAM, VISIBILITIES, ServedOrganisation
from tests.server.access.specified_calls import (
    ADMIN_ROLE,
    CALLS,
    CUSTOM_ROLE,
    ELSEWHERE,
    Call,
    filled,
    logged_run,
)
from tests.server.access.test_matrix import REFUSED, WHO, Walk, pairs
from tests.server.database.artifacts.making import logged, md5

ROWS: Final = list(csv.DictReader((Path(__file__).with_name("permissions.csv")).read_text().splitlines()))
REQUESTERS: Final = {**WHO, "self": "selma", "registry_admin": "ruth"}
WITHOUT_A_RIGHT: Final = {
    "a deleted account is not kept": "tests/server/accounts/routes/test_own_account.py",
    "names are unique": "tests/server/teams/routes/test_teams.py",
    "names never change": "tests/server/teams/routes/test_teams.py",
    "the primary address is verified": "tests/server/accounts/routes/test_own_account.py",
    "the primary address stays": "tests/server/accounts/routes/test_own_account.py",
    "custom roles are checked": "tests/server/organisation/routes/test_roles.py",
    "attribution decides": "tests/server/ingest/test_accounts.py",
    "billing decides": "tests/server/usage/test_limits.py",
}
"""What decides rows that name no permission, and where that is tested."""


@pytest.fixture(scope="module")
def cells(served: ServedOrganisation) -> Iterator[Walk]:
    """The organisation, with a second administrator, members to change, and open projects of another team."""
    accounts, store = served.accounts, served.metadata_store
    for name in ("dan", "dora", "selma", "frank"):
        how = {"address": f"{name}@lab.example", "verified": True}
        served.users[name] = accounts.users.create(name, CLI, NOW, **how).id
    accounts.roles.create("Tagger", "viewer", ["run:update"], "", CLI, NOW)
    served.users["oscar"] = accounts.users.create("oscar", CLI, NOW, org_role="admin").id
    for name, role in (("dan", "member"), ("dora", "admin"), ("frank", "member")):
        accounts.members.add(TEAM, name, role, CLI, NOW)
    accounts.members.remove(TEAM, "frank", CLI, NOW)
    for level in ("open", "public"):
        served.add_run(f"voice-{level}-otto", f"voice-{level}", OTHER_TEAM, "otto")
        accounts.owned_projects.update(store.projects.id(f"voice-{level}"), CLI, NOW, visibility=level)
    served.add_run("moved-bob", "carols", TEAM, "bob")
    accounts.owned_projects.update(store.projects.id("carols"), CLI, NOW, owner_id=served.users["carol"])
    for level in VISIBILITIES:
        for author in ("bob", "carol"):
            served.add_report(level, author)
    for project in ("team", "organisation"):
        _log_artifact(served, project)
    _add_registry(served)
    served.rights_changed()
    with httpx.Client(base_url=f"{served.url}/api/v1", timeout=PATIENCE_S) as client:
        yield Walk(served, client)


def _add_registry(served: ServedOrganisation) -> None:
    """Link `weights` of the project `organisation` to the registry `model`, which ruth administers."""
    accounts, store, by = served.accounts, served.metadata_store, Changer(CLI)
    served.users["ruth"] = accounts.users.create("ruth", CLI, NOW).id
    served.keys["ruth"] = accounts.keys.create("ruth", CLI, NOW, user_id=served.users["ruth"], scope="full")[
        0
    ]
    accounts.members.add(TEAM, "ruth", "member", CLI, NOW)
    owner = ProjectOwner(accounts.teams.by_name(TEAM).id)
    registry = store.registries.create(owner, "model", "", NOW, by)
    store.registries.add_admin(registry.id, served.users["ruth"], "ruth", NOW, by)
    weights = store.artifacts.collections.member(store.projects.id("organisation"), "weights:latest")
    assert weights is not None
    store.artifacts.links.link(weights.version.id, registry.id, "digits", [], NOW, by)


def _log_artifact(served: ServedOrganisation, project: str) -> None:
    """Log the artifact `weights` to a project."""
    content, store = b"weights", served.metadata_store
    project_id, contents = store.projects.id(project), store.artifacts.contents
    files: ReceivedFiles = served.served.app.services.files
    path = files.begin(len(content))
    Path(path).write_bytes(content)
    sha256 = hashlib.sha256(content).hexdigest()
    files.keep(path, sha256, len(content), lambda file: contents.add(project_id, md5(content), file, NOW), 0)
    files.end(path)
    logged(store, project_id, {"weights.bin": content}, "weights")


def test_every_row_of_the_specification_is_as_it_says(cells: Walk) -> None:
    wrong: list[str] = []
    sent = 0
    for row in ROWS:
        for permission, on in pairs(row) if row["permission"] else ():
            call = call_of(permission, on)
            if call is not None:
                sent += 1
                wrong += [
                    f"{row['action']}, {row['role']}: {problem}" for problem in check(cells, row, call, on)
                ]
    assert wrong == []
    assert sent >= 190


def test_every_row_is_checked(cells: Walk) -> None:
    routes = declared_routes(cells.served.served.app.api.routes)
    # Doors have the addresses of other systems: their rights are tested beside them.
    needed = {route.action for route in routes if route.path.startswith("/api/v1/")}
    for row in ROWS:
        if not row["permission"]:
            test = WITHOUT_A_RIGHT[row["on"]]
            assert os.path.exists(Path(__file__).parents[3] / test), test
            continue
        for permission, on in pairs(row):
            if call_of(permission, on) is None:
                test = ELSEWHERE.get(permission)
                assert test is None or os.path.exists(Path(__file__).parents[3] / test), test
                assert test, f"{permission} has no request in specified_calls.py"
                assert permission not in needed, f"{permission} has a route now: add a request of it"


def test_no_route_of_an_account_names_somebody_elses(cells: Walk) -> None:
    """So `own` of the rows about accounts needs no check against others."""
    for route in declared_routes(cells.served.served.app.api.routes):
        if route.permission.startswith("account"):
            assert not route.parameters & {"user", "member", "team", "entity"}, route


def call_of(permission: str, on: str) -> Call | None:
    if permission == "member:update_role" and on in ("custom member", "admin member"):
        return CUSTOM_ROLE if on == "custom member" else ADMIN_ROLE
    return CALLS.get(permission)


def check(cells: Walk, row: dict[str, str], call: Call, on: str) -> list[str]:
    """What is wrong with the answers to a row's request."""
    decided, who = row["decided"], REQUESTERS[row["role"]]
    problems = []
    for own in (True, False) if decided == "own" and who == "carol" else (who == "selma",):
        target = target_of(row, on, own)
        if "{report}" in call.path:
            target["report"] = str(cells.served.reports[target["run"]])
        with ExitStack() as switches:
            if on == "report without links":
                switches.enter_context(cells.switched("no links"))
            if decided.startswith("if "):
                if allowed(cells, who, call, target):
                    problems.append(f"allowed without {decided[3:]}")
                switches.enter_context(cells.switched(decided[3:]))
            expected = decided == "yes" or decided.startswith("if ") or (decided == "own" and own)
            if allowed(cells, who, call, target) is not expected:
                problems.append(
                    f"{call.method} {call.path} {target} is not {'allowed' if expected else 'refused'}"
                )
    return problems


def target_of(row: dict[str, str], on: str, own: bool) -> dict[str, str]:
    """The names that a request for a row has in its path and body."""
    level = next((level for level in VISIBILITIES if on.startswith(level)), "team")
    project = level
    if "another team" in on:
        project = f"voice-{level}" if level != "team" else "voice"
    elif row["permission"] in ("project:update", "project:delete"):
        project = "team"  # one that the administrator does not own
    return {
        "run": "moved-bob" if "own project" in on else f"{level}-{'carol' if own else 'bob'}",
        "project": project,
        "entity": OTHER_TEAM if "another team" in on else TEAM,
        "team": TEAM,
        "member": "dora" if on == "admin member" and row["permission"] == "member:remove" else "dan",
        "role": "admin" if on == "admin member" else "member",
    }


def allowed(cells: Walk, who: str | None, call: Call, target: dict[str, str]) -> bool:
    """Whether the requester got it; the rest must be a refusal."""
    served = cells.served
    target = {**target, **call.prepare(served)}
    if call.path == "/ingest":
        headers = {} if who is None else {"authorization": f"Bearer {served.keys[who]}"}
        body = logged_run(target["project"], target["entity"])
    else:
        headers = {"sec-fetch-site": "same-origin", "content-type": "application/json"}
        if who in cells.sessions:
            headers["cookie"] = f"runvitals_session={cells.sessions[who]}"
        elif who is not None:
            headers["authorization"] = f"Bearer {served.keys[who]}"
        body = filled(call.body, target)
    response = cells.client.request(call.method, filled(call.path, target), headers=headers, json=body)
    got = call.allowed(response)
    if got:
        call.undo(served)
        served.rights_changed()
    else:
        assert response.status_code in (*REFUSED, 200), (
            who,
            call,
            target,
            response.status_code,
            response.text[:300],
        )
    return got
