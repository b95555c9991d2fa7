"""Generated requests to every operation of the OpenAPI document, in ten roles.

No response is an error of the server, each is as the document describes, and none shows what is another
team's. Reading operations come first, changes last, those of administrators at the very end: what they
change, others may then see.
"""

from __future__ import annotations

import http.cookiejar
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from runvitals.server.accounts.passwords import Passwords
from runvitals.server.audit.storage.audit import CLI
from tests.patience import PATIENCE_S
from tests.server.access.organisation import NOW, OTHER_TEAM, TEAM, ServedOrganisation
from tests.server.accounts.routes.people import CountingHasher
from tests.server.serving import serving

CHECKS: Final = [not_a_server_error, status_code_conformance, response_schema_conformance]
SECRET: Final = "zebra"
"""In everything of the other team that only its members may know."""
OWN: Final = {
    "run": "team-bob",
    "project": "team",
    "team": TEAM,
    "entity": TEAM,
    "user": "bob",
    "member": "bob",
}
OTHERS: Final = {
    "run": f"{SECRET}-run",
    "project": f"{SECRET}-project",
    "team": OTHER_TEAM,
    "entity": OTHER_TEAM,
    "user": "otto",
    "member": "otto",
}
NAMES: Final = (OTHERS, OWN)
WITHOUT_SECRETS: Final = (
    "visitor",
    "stranger",
    "viewer",
    "member",
    "tagger",
    "ci",
    "reader",
    "guest",
    "admin",
)
ROLES: Final = (*WITHOUT_SECRETS, "rita")
OUTSIDERS: Final = ("visitor", "guest", "ci", "admin", "rita")
"""Roles that ask for what is the other team's, one for each way in which that is decided. Others may do no
more than `admin` may; `test_matrix` sends requests in all roles."""
MAY_MUCH: Final = ("tagger", "ci", "admin", "rita")
"""Roles that ask for what is their own team's. Others are refused much of it before anything is read."""
NOT_SENT: Final = ("/api/v1/auth/logout", "/api/v1/account/sessions")
"""They end the sessions that later requests need; they have tests of their own."""


class Roles:
    """Sends requests in each role.

    Attributes:
        succeeded: how many responses were a success, by role.
    """

    def __init__(self, served: ServedOrganisation) -> None:
        self.served = served
        self.succeeded: Counter[str] = Counter()
        self._validated: set[tuple[object, ...]] = set()
        self._session = requests.Session()
        self._session.trust_env = False  # it would look for proxies before each request
        # Cookies of responses are not kept: each request has those of its role.
        self._session.cookies.set_policy(http.cookiejar.DefaultCookiePolicy(allowed_domains=[]))
        accounts = served.accounts
        reader, _ = accounts.keys.create("reader", CLI, NOW, user_id=served.users["carol"], scope="read")
        project = served.metadata_store.projects.id("team")
        link, _ = accounts.guest_links.create(CLI, NOW, project_id=project)
        self._programs = {
            "ci": {"authorization": f"Bearer {served.keys['ci']}"},
            "reader": {"authorization": f"Bearer {reader}"},
            "guest": {"x-runvitals-link": link},
        }
        self._people = {
            "stranger": "nora",
            "viewer": "vera",
            "member": "carol",
            "tagger": "tina",
            "admin": "alice",
            "rita": "rita",
        }

    def headers(self, role: str) -> dict[str, str]:
        """What requests in a role come with; sessions are new, because requests end some."""
        if role in self._people:
            cookie = f"runvitals_session={self.served.sign_in(self._people[role])}"
            return {"cookie": cookie, "sec-fetch-site": "same-origin"}
        return self._programs.get(role, {})

    def problems(self, case: Any, role: str, headers: Mapping[str, str]) -> Iterator[str]:
        """What is wrong with the response to a request in a role."""
        what = f"{role}: {case.method} {case.formatted_path}"
        sent = {**headers, "content-type": "application/json"} if case.method != "GET" else headers
        response = case.call(
            base_url=self.served.url, session=self._session, headers=dict(sent), timeout=PATIENCE_S
        )
        self.succeeded[role] += response.status_code < 300
        kind = str(response.headers.get("content-type"))
        answer = (case.operation.label, response.status_code, kind, response.content)
        if answer not in self._validated:  # many roles are refused alike
            self._validated.add(answer)
            try:
                case.validate_response(response, checks=CHECKS)
            except FailureGroup as failures:
                for failure in failures.exceptions:
                    yield f"{what}: {response.status_code}: {failure}"
            except Failure as failure:
                yield f"{what}: {response.status_code}: {failure}"
        text = response.content.decode("utf-8", "replace")
        if role in WITHOUT_SECRETS and SECRET in without_given(text, case):
            yield f"{what}: {response.status_code} shows what is another team's: {text[:300]}"


def without_given(text: str, case: Any) -> str:
    """The text of a response without what the request named, which errors may repeat."""
    given_names = [str(value) for value in (case.path_parameters or {}).values()]
    for name in sorted(given_names, key=len, reverse=True):
        text = text.replace(name, "") if name else text
    return text


@pytest.fixture(scope="module")
def roles(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Roles]:
    folder = tmp_path_factory.mktemp("roles")
    with serving(folder, passwords=Passwords(CountingHasher())) as server:
        served = ServedOrganisation(server)
        accounts = served.accounts
        for name in ("nora", "tina"):
            served.users[name] = accounts.users.create(name, CLI, NOW).id
        accounts.roles.create("Tagger", "viewer", ["run:update", "member:invite"], "", CLI, NOW)
        accounts.members.add(TEAM, "tina", "Tagger", CLI, NOW)
        served.rights_changed()
        mark(served)
        yield Roles(served)


def mark(served: ServedOrganisation) -> None:
    """Give the other team a run, a service account, a key and an invitation with the secret word in them."""
    now_ms = time.time_ns() // 1_000_000
    about = {"name": f"{SECRET} name", "tags": [f"{SECRET}-tag"], "notes": f"{SECRET} notes"}
    facts = {"t": now_ms, "run": about, "config": {f"{SECRET}_lr": 1}, "summary": {f"{SECRET}_loss": 2}}
    sent = {
        "run": OTHERS["run"],
        "writer": f"monitor.{SECRET}",
        "project": OTHERS["project"],
        "entity": OTHER_TEAM,
        "seq": 1,
        "about": {"role": "monitor", "host": f"{SECRET}-host", "interval_s": 3600},
        "keys": [f"{SECRET}.key", "cpu"],
        "t": [now_ms],
        "v": [[1.0], [2.0]],
        "records": [[1, "info", facts]],
    }
    response = served.ask("otto", "POST", "/api/v1/ingest", json=sent)
    assert response.status_code == 200, response.text
    assert SECRET in served.ask("otto", "GET", "/api/v1/runs").text
    accounts = served.accounts
    team_id = accounts.teams.by_name(OTHER_TEAM).id
    service = accounts.service_accounts.create(f"{SECRET}-ci", team_id, CLI, NOW)
    accounts.keys.create(f"{SECRET}-key", CLI, NOW, service_account_id=service.id)
    accounts.invitations.create(OTHER_TEAM, f"{SECRET}@lab.example", "member", CLI, NOW)


@pytest.fixture(scope="module")
def operations(roles: Roles) -> list[Any]:
    document = json.loads(json.dumps(roles.served.served.app.api.openapi()))
    schema = schemathesis.openapi.from_dict(document)
    schema.config.generation.update(modes=[GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
    calls = [result.ok() for result in schema.get_all_operations()]
    return [
        operation
        for operation in calls
        if operation.path not in NOT_SENT and not operation.path.endswith("/live")  # a stream has no end
    ]


def test_no_role_breaks_the_server_or_sees_what_is_another_teams(roles: Roles, operations: list[Any]) -> None:
    assert len(operations) >= 150
    reads = [operation for operation in operations if operation.method == "get"]
    changes = sorted(
        (operation for operation in operations if operation.method != "get"),
        key=lambda operation: bool(operation.method == "delete"),
    )
    cases = [requests_of(operation) for operation in (*reads, *changes)]
    read, changed = cases[: len(reads)], cases[len(reads) :]
    problems: list[str] = []
    for part, senders in ((read, ROLES), (changed, WITHOUT_SECRETS), (changed, ("rita",))):
        for generated in part:
            problems += found_in(roles, generated, senders)
    assert problems == []
    assert set(roles.succeeded) == set(ROLES)
    assert roles.succeeded["rita"] > roles.succeeded["admin"] > roles.succeeded["stranger"]


def requests_of(operation: Any) -> list[Any]:
    """Generated requests: the first names what is the other team's, the second what is the own team's."""
    generated: list[Any] = []
    cases = operation.as_strategy(GenerationMode.POSITIVE) | operation.as_strategy(GenerationMode.NEGATIVE)

    @seed(1)
    @settings(
        max_examples=len(NAMES) if "{" in operation.path else 1,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def generate(case: Any) -> None:
        generated.append(case)

    generate()
    for case, names in zip(generated, NAMES, strict=False):
        for name in case.path_parameters or {}:
            case.path_parameters[name] = names.get(name, case.path_parameters[name])
    return generated


def found_in(roles: Roles, cases: list[Any], senders: tuple[str, ...]) -> list[str]:
    """The problems of the requests to one operation in some roles."""
    problems: list[str] = []
    headers: dict[str, dict[str, str]] = {}
    for case, named in zip(cases, (OUTSIDERS, MAY_MUCH), strict=False):
        for role in senders:
            if role in named or not case.path_parameters:
                headers.setdefault(role, roles.headers(role))
                problems += roles.problems(case, role, headers[role])
    return problems
