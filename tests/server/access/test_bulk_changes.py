"""Changes of many runs with one request: each run needs its own permission."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from runvitals.server.audit.storage.audit import AuditFilter
from tests.server.access.organisation import ServedOrganisation, served_organisation


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedOrganisation]:
    """An organisation whose runs the tests of this module change."""
    with served_organisation(tmp_path_factory.mktemp("bulk")) as served:
        yield served


def bulk(served: ServedOrganisation, who: str | None, do: str, *ids: str, **changes: Any) -> dict[str, Any]:
    body: dict[str, Any] = {"runs": [{"id": run_id} for run_id in ids], "do": do}
    if changes:
        body["changes"] = changes
    response = served.ask(who, "POST", "/api/v1/runs/bulk", json=body)
    assert response.status_code == 200, response.text
    results = response.json()["results"]
    assert [result["id"] for result in results] == list(ids)
    return {result["id"]: result["done"] or result["error"] for result in results}


def test_each_run_needs_its_own_permission(changed: ServedOrganisation) -> None:
    results = bulk(changed, "bob", "delete", "team-bob", "team-carol", "voice-otto", "no-such-run")
    assert results["team-bob"] == "delete"
    assert "needs the permission run:delete" in results["team-carol"]
    hidden, missing = results["voice-otto"], results["no-such-run"]
    assert hidden.replace("voice-otto", "") == missing.replace("no-such-run", "")
    assert changed.ask("bob", "GET", "/api/v1/runs/team-bob").status_code == 404
    assert changed.ask("bob", "GET", "/api/v1/runs/team-carol").status_code == 200
    assert bulk(changed, "carol", "restore", "team-bob") != {"team-bob": "restore"}
    assert bulk(changed, "bob", "restore", "team-bob") == {"team-bob": "restore"}


def test_runs_are_tagged_and_edited_together(changed: ServedOrganisation) -> None:
    ids = ("team-bob", "team-carol", "team-ci")
    assert set(bulk(changed, "carol", "update", *ids, add_tags=["best", "x"], notes="seen").values()) == {
        "update"
    }
    bulk(changed, "carol", "update", *ids, remove_tags=["x"])
    for run_id in ids:
        run = changed.ask("vera", "GET", f"/api/v1/runs/{run_id}").json()
        assert (run["tags"], run["notes"]) == (["best"], "seen")
    events = changed.accounts.audit.page(AuditFilter(action="run.update"))
    assert {event.run for event in events} >= set(ids)


def test_moving_many_runs_needs_the_right_to_each(changed: ServedOrganisation) -> None:
    results = bulk(changed, "carol", "update", "team-carol", "team-bob", project="public")
    assert results["team-carol"] == "update"
    assert "run:move" in results["team-bob"]


def test_who_may_change_nothing(changed: ServedOrganisation) -> None:
    assert "permission run:update" in bulk(changed, "vera", "update", "team-bob", notes="x")["team-bob"]
    assert "no run" in bulk(changed, "otto", "stop", "team-bob")["team-bob"]
    body = {"runs": [{"id": "team-bob"}], "do": "delete"}
    assert changed.ask(None, "POST", "/api/v1/runs/bulk", json=body).status_code == 401


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"runs": [], "do": "delete"}, "runs"),
        ({"runs": [{"id": "a"}] * 1001, "do": "delete"}, "runs"),
        ({"runs": [{"id": "a"}], "do": "rename"}, "do"),
        ({"runs": [{"id": "a"}], "do": "update"}, "changes"),
        ({"runs": [{"id": "a"}], "do": "delete", "changes": {"notes": "x"}}, "changes"),
        ({"runs": [{"id": "a"}], "do": "update", "changes": {"tags": [], "add_tags": ["x"]}}, "changes.tags"),
    ],
)
def test_wrong_requests_name_the_field(changed: ServedOrganisation, body: dict[str, Any], field: str) -> None:
    response = changed.ask("bob", "POST", "/api/v1/runs/bulk", json=body)
    assert (response.status_code, list(response.json()["fields"])) == (422, [field])
