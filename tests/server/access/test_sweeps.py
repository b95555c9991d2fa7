"""Sweeps over our API: who may make, control and delete them, and what is valid."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from runvitals.server.audit.storage.audit import AuditFilter
from runvitals.server.sweeps.configuration import InvalidConfiguration
from runvitals.server.sweeps.sources import from_yaml
from tests.server.access.organisation import ServedOrganisation, served_organisation

PATH = "/api/v1/entities/vision/projects/team/sweeps"
CONFIGURATION = {"method": "grid", "metric": {"name": "loss"}, "parameters": {"lr": {"values": [0.1, 0.2]}}}


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedOrganisation]:
    with served_organisation(tmp_path_factory.mktemp("sweeps")) as served:
        yield served


def make(seen: ServedOrganisation, who: str | None, configuration: Any = CONFIGURATION) -> Any:
    return seen.ask(who, "POST", PATH, json={"configuration": configuration, "name": "first"})


def test_a_sweep_is_its_authors_and_the_administrators(seen: ServedOrganisation) -> None:
    for who, status in (("vera", 403), ("otto", 404), (None, 401)):
        assert make(seen, who).status_code == status, who
    made = make(seen, "bob")
    assert made.status_code == 201, made.text
    sweep = made.json()
    assert (sweep["name"], sweep["state"], sweep["expected_runs"]) == ("first", "pending", 2)
    assert sweep["may"] == ["sweep:control", "sweep:delete"]
    as_vera = {**sweep, "may": []}
    assert seen.ask("vera", "GET", PATH).json() == {"sweeps": [as_vera], "total": 1, "next": None}
    address = f"{PATH}/{sweep['id']}"
    assert seen.ask("vera", "GET", address).json() == as_vera
    assert seen.ask("otto", "GET", address).status_code == 404
    for who, status in (("vera", 403), ("carol", 403), ("otto", 404), (None, 401)):
        assert seen.ask(who, "POST", f"{address}/pause").status_code == status, who
        assert seen.ask(who, "DELETE", address).status_code == status, who
    assert seen.ask("bob", "POST", f"{address}/pause").json()["state"] == "paused"
    assert seen.ask("alice", "POST", f"{address}/resume").json()["state"] == "running"
    assert seen.ask("bob", "POST", f"{address}/cancel").json()["state"] == "canceled"
    assert seen.ask("bob", "POST", f"{address}/resume").status_code == 409
    assert seen.ask("bob", "POST", f"{address}/begin").status_code == 422
    assert seen.ask("alice", "DELETE", address).status_code == 204
    assert seen.ask("bob", "GET", address).status_code == 404
    events = seen.accounts.audit.page(AuditFilter(action="sweep.*"))
    done = [event.action for event in events if event.outcome == "ok"]
    assert sorted(done) == ["sweep.control"] * 3 + ["sweep.delete"]


def test_agents_need_the_right_to_log(seen: ServedOrganisation) -> None:
    sweep = f"{PATH}/{make(seen, 'bob').json()['id']}"
    for who, status in (("vera", 403), ("otto", 404), (None, 401)):
        assert seen.ask(who, "POST", f"{sweep}/agents", json={"host": "node1"}).status_code == status, who
    agent = seen.ask("carol", "POST", f"{sweep}/agents", json={"host": "node1"}).json()["id"]
    report = f"{sweep}/agents/{agent}/report"
    for who, status in (("vera", 403), ("otto", 404), (None, 401)):
        assert seen.ask(who, "POST", report, json={"running": []}).status_code == status, who
    (command,) = seen.ask("carol", "POST", report, json={"running": []}).json()["commands"]
    assert (command["do"], command["parameters"], command["program"]) == ("run", {"lr": 0.1}, None)
    (row,) = seen.ask("vera", "GET", f"{sweep}/runs").json()["runs"]
    assert (row["id"], row["run"], row["waits"], row["value"]) == (command["run"], None, True, None)
    assert seen.ask("vera", "GET", sweep).json()["agents"] == 1
    for path, sent, status in (
        (f"{sweep}/agents/999999/report", {"running": []}, 404),
        (f"{sweep}/agents/x/report", {"running": []}, 422),
        (report, {"running": ["x"] * 101}, 422),
        (report, {}, 422),
        (f"{PATH}/none/agents", {"host": "node1"}, 404),
    ):
        assert seen.ask("carol", "POST", path, json=sent).status_code == status, path


def test_what_is_wrong_is_named_by_field(seen: ServedOrganisation) -> None:
    response = make(seen, "bob", {"method": "grid", "parameters": {"lr": {"values": 3}}, "run_cap": 0})
    assert response.status_code == 422
    assert response.json()["fields"].keys() == {
        "configuration.parameters.lr.values",
        "configuration.run_cap",
    }


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (nested(120), "nested too deeply; expected at most 100 levels"),
        ("\ud800", "a text has a lone surrogate"),
        ("x" * 300_000, "characters as JSON; expected at most 262,144"),
    ],
)
def test_what_no_list_of_sweeps_could_be_made_of_is_refused(
    seen: ServedOrganisation, value: Any, problem: str
) -> None:
    sent = json.dumps({"configuration": {"method": "random", "parameters": {"x": {"value": value}}}})
    response = seen.ask("bob", "POST", PATH, content=sent, headers={"content-type": "application/json"})
    assert (response.status_code, problem in response.json()["error"]) == (422, True), response.text[:500]


@pytest.mark.parametrize("number", ["1" + ":1" * 1000, "1" + ":1" * 1000 + ".5", "0x" + "f" * 1000])
def test_numbers_that_take_long_to_read_are_refused(number: str) -> None:
    with pytest.raises(InvalidConfiguration, match="digits; expected at most 100"):
        from_yaml(f"method: random\nparameters: {{x: {{value: {number}}}}}")
