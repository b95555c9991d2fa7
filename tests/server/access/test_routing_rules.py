"""Rules of a project that choose the run of values: who may read and change them, and what is valid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from runvitals.server.doors.routing import DEFAULT_RULES
from tests.server.access.organisation import ServedOrganisation, served_organisation

PATH = "/api/v1/entities/vision/projects/team/routing-rules"


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedOrganisation]:
    with served_organisation(tmp_path_factory.mktemp("rules")) as served:
        yield served


def put(seen: ServedOrganisation, who: str | None, rules: Any, path: str = PATH) -> Any:
    return seen.ask(who, "PUT", path, json={"rules": rules})


def test_who_may_change_the_project_changes_its_rules(seen: ServedOrganisation) -> None:
    rules = {"run": ["{trial}"], "host": ["{machine}"]}
    response = put(seen, "alice", rules)
    assert response.status_code == 200, response.text
    read = seen.ask("vera", "GET", PATH).json()
    assert (read["rules"], read["defaults"]["host"]) == (rules, list(DEFAULT_RULES.host))
    assert read["changed_ms"] == response.json()["changed_ms"]
    assert seen.ask("vera", "GET", "/api/v1/projects/team/routing-rules").json() == read
    for who, status in (("vera", 403), ("carol", 403), ("otto", 404), (None, 401)):
        assert put(seen, who, rules).status_code == status, who
    assert seen.ask("otto", "GET", PATH).status_code == 404
    assert put(seen, "bob", {}).json()["rules"] == {}
    assert put(seen, "alice", {"run": ["{x}"]}, "/api/v1/projects/team/routing-rules").status_code == 200


@pytest.mark.parametrize(
    ("rules", "field"),
    [
        ({"run": ["{a"]}, "rules.run[0]"),
        ({"runs": ["{a}"]}, "rules.runs"),
        ({"host": ["{a}"] * 30}, "rules.host"),
        ({"host": "{a}"}, "rules.host"),
        ({"host": [7]}, "rules.host[0]"),
    ],
)
def test_wrong_rules_name_the_field(seen: ServedOrganisation, rules: Any, field: str) -> None:
    response = put(seen, "alice", rules)
    assert response.status_code == 422
    assert field in response.json()["fields"], response.text
