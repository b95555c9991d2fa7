"""JSON that could not be stored and shown: every route refuses it, and what is damaged breaks no list."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Table, update

from runvitals.server.database.tables.alert_rules import alert_rule
from runvitals.server.database.tables.projects import saved_view
from runvitals.server.database.tables.runs import event, section
from runvitals.server.database.tables.sweeps import sweep
from runvitals.server.runs.storage.events import StoredEvent
from runvitals.server.runs.storage.sections import SectionUpdate
from tests.server.access.organisation import NOW, ServedOrganisation, served_organisation

VIEW: dict[str, Any] = {"kind": "runs", "project": "team", "entity": "vision", "name": "best"}
IDLE = {"kind": "threshold", "metric": "gpu.*.gpu", "operator": "<", "value": 5}
RULE = {"name": "idle", "for": "1m", "condition": IDLE}
SWEEP = {"method": "random", "parameters": {"lr": {"values": [0.1, 0.2]}}}
RULES, SWEEPS = "/api/v1/entities/vision/alert-rules", "/api/v1/entities/vision/projects/team/sweeps"
ROUTES = [
    ("POST", "/api/v1/views"),
    ("PATCH", "/api/v1/organisation/settings"),
    ("PATCH", "/api/v1/teams/vision/settings"),
    ("PATCH", "/api/v1/account/profile"),
    ("POST", RULES),
    ("POST", f"{RULES}/dry-run"),
    ("POST", SWEEPS),
    ("POST", "/api/v1/teams/vision/automations"),
    ("PATCH", "/api/v1/runs/team-bob"),
    ("POST", "/api/v1/runs/bulk"),
    ("POST", "/api/2.0/mlflow/runs/set-tag"),
    ("POST", "/api/2.0/mlflow/registered-models/create"),
    ("POST", "/graphql"),
    ("POST", "/files/vision/team/team-bob/file_stream"),
    ("POST", "/v1/metrics"),
]
BODIES = {
    "a key with a lone surrogate": '{"\\ud800": 1}',
    "one in a view": '{"kind": "runs", "project": "team", "name": "n", "data": {"\\ud800": 1}}',
    "one in a rule": '{"rule": {"\\ud800": 1}}',
    "one in a condition": '{"rule": {"name": "n", "condition": {"\\ud800": 1}}}',
    "a text with a lone surrogate": '{"data": {"x": "\\ud800"}, "name": "\\udfff", "run_id": "\\ud800"}',
    "nested 300 deep": '{"data": ' + '{"a":' * 300 + "1" + "}" * 300 + "}",
    "nested 100,000 deep": '{"data": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "an integer of 5000 digits": '{"data": {"a": ' + "9" * 5000 + "}}",
}


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedOrganisation]:
    with served_organisation(tmp_path_factory.mktemp("json")) as served:
        yield served


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_every_route_refuses_it(seen: ServedOrganisation, method: str, path: str, body: str) -> None:
    sent = {"content-type": "application/json"}
    who = "rita" if "/organisation/" in path else "alice"
    response = seen.ask(who, method, path, content=body, headers=sent)
    assert response.status_code < 500, response.text
    if path == "/api/v1/views":
        assert response.status_code in (400, 422)


def test_a_view_that_no_browser_could_show_is_not_saved(seen: ServedOrganisation) -> None:
    body = json.dumps({**VIEW, "data": {"a": nested(260)}})
    response = seen.ask(
        "bob", "POST", "/api/v1/views", content=body, headers={"content-type": "application/json"}
    )
    assert response.status_code == 422
    assert "nested too deeply; expected at most 100 levels" in response.json()["fields"]["data"]


def nested(levels: int) -> list[Any]:
    return json.loads("[" * levels + "]" * levels)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "poison",
    ['{"a":' + "[" * 400 + "]" * 400 + "}", "[1]", "{broken", ""],
    ids=["nested 400 deep", "a list", "no JSON", "empty"],
)
def test_what_is_damaged_in_the_database_breaks_no_list(seen: ServedOrganisation, poison: str) -> None:
    view = seen.ask("bob", "POST", "/api/v1/views", json={**VIEW, "data": {}}).json()
    other = seen.ask("bob", "POST", "/api/v1/views", json={**VIEW, "name": "other", "data": {"a": 1}}).json()
    rule = seen.ask("alice", "POST", RULES, json={"rule": RULE}).json()
    made = seen.ask("bob", "POST", SWEEPS, json={"configuration": SWEEP}).json()
    run = seen.metadata_store.runs.find("team-bob", NOW)
    assert run is not None
    seen.metadata_store.events.add([StoredEvent(run.id, NOW, "alert")])
    seen.metadata_store.sections.merge([SectionUpdate(run.id, "config", {"lr": 0.1}, NOW)])

    def damage(table: Table, column: str, key: str, value: object) -> None:
        same = table.c[key] == value
        seen.metadata_store.write(lambda one: one.execute(update(table).where(same).values({column: poison})))

    damage(saved_view, "data", "id", view["id"])
    damage(alert_rule, "definition", "id", rule["id"])
    damage(sweep, "configuration", "name", made["id"])
    damage(event, "body", "run_id", run.id)
    damage(section, "body", "run_id", run.id)

    def read(path: str, **params: Any) -> Any:
        response = seen.ask("bob", "GET", path, params=params)
        assert response.status_code == 200, response.text
        return response.json()

    views = {one["id"]: one for one in read("/api/v1/views", project="team", entity="vision")["views"]}
    assert views[view["id"]]["damaged"]
    assert views[view["id"]]["data"] == {}
    assert views[other["id"]]["damaged"] is None
    assert views[other["id"]]["data"] == {"a": 1}
    assert "damaged" in read(RULES)["rules"][0]["rule"]
    assert [one["method"] for one in read(SWEEPS)["sweeps"] if one["id"] == made["id"]] == ["damaged"]
    assert "damaged" in read("/api/v1/runs/team-bob")["config"]
    assert "team-bob" in [one["id"] for one in read("/api/v1/runs")["runs"]]
    assert "damaged" in [one["name"] for one in read("/api/v1/runs/team-bob/events")]
    for id in (view["id"], other["id"]):
        assert seen.ask("bob", "DELETE", f"/api/v1/views/{id}").status_code == 204
    assert seen.ask("alice", "DELETE", f"{RULES}/{rule['id']}").status_code < 300
