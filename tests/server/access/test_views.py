"""Saved views: one's own are for oneself, published ones for everyone who sees the project."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from runvitals.server.projects.storage import saved_views
from tests.server.access.organisation import ServedOrganisation, served_organisation
from tests.server.client import Client

NEW = {"kind": "runs", "project": "team", "entity": "vision", "data": {"sort": "-summary.loss"}}


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedOrganisation]:
    """An organisation in which the tests of this module save views."""
    with served_organisation(tmp_path_factory.mktemp("views")) as served:
        yield served


def saved(seen: ServedOrganisation, who: str, name: str, **how: Any) -> dict[str, Any]:
    response = seen.ask(who, "POST", "/api/v1/views", json={**NEW, "name": name, **how})
    assert response.status_code == 201, response.text
    view: dict[str, Any] = response.json()
    return view


def names(seen: ServedOrganisation, who: str, **params: Any) -> list[str]:
    query = {"project": "team", "entity": "vision", **params}
    response = seen.ask(who, "GET", "/api/v1/views", params=query)
    assert response.status_code == 200, response.text
    return [view["name"] for view in response.json()["views"]]


def change(seen: ServedOrganisation, who: str, view: dict[str, Any], **changes: Any) -> httpx.Response:
    body = {"revision": view["revision"], **changes}
    return seen.ask(who, "PATCH", f"/api/v1/views/{view['id']}", json=body)


def test_own_views_are_for_oneself(seen: ServedOrganisation) -> None:
    view = saved(seen, "vera", "mine")
    assert (view["owner"], view["revision"], view["may"]) == ("vera", 1, ["workspace:update"])
    assert "mine" in names(seen, "vera")
    assert "mine" not in names(seen, "alice")
    for method, body in (("PATCH", {"revision": 1, "name": "x"}), ("DELETE", None)):
        hidden = seen.ask("alice", method, f"/api/v1/views/{view['id']}", json=body)
        missing = seen.ask("alice", method, "/api/v1/views/123456", json=body)
        assert hidden.status_code == missing.status_code == 404
        assert hidden.text.replace(str(view["id"]), "") == missing.text.replace("123456", "")
    assert seen.ask("vera", "DELETE", f"/api/v1/views/{view['id']}").status_code == 204
    assert "mine" not in names(seen, "vera")


def test_a_revision_that_no_database_has_is_not_valid(seen: ServedOrganisation) -> None:
    view = saved(seen, "vera", "numbered")
    for revision in (2**31, 2**63, 10**30):
        assert change(seen, "vera", view, revision=revision).status_code == 422


def test_published_views_need_the_right_to_change_workspaces(seen: ServedOrganisation) -> None:
    view = saved(seen, "bob", "for all", published=True)
    assert view["owner"] is None
    assert "for all" in names(seen, "vera")
    [shown] = [
        one
        for one in seen.ask("vera", "GET", "/api/v1/views", params={"project": "team"}).json()["views"]
        if one["id"] == view["id"]
    ]
    assert shown["may"] == []
    assert change(seen, "vera", view, name="hers").status_code == 403
    assert seen.ask("vera", "DELETE", f"/api/v1/views/{view['id']}").status_code == 403
    refused = seen.ask("vera", "POST", "/api/v1/views", json={**NEW, "name": "x", "published": True})
    assert refused.status_code == 403
    assert change(seen, "carol", view, name="for everyone").json()["name"] == "for everyone"


def test_a_view_is_published_and_taken_back(seen: ServedOrganisation) -> None:
    view = saved(seen, "bob", "draft")
    published = change(seen, "bob", view, published=True).json()
    assert (published["owner"], "draft" in names(seen, "vera")) == (None, True)
    mine = change(seen, "carol", published, published=False).json()
    assert (mine["owner"], "draft" in names(seen, "bob")) == ("carol", False)
    assert change(seen, "vera", saved(seen, "vera", "own"), published=True).status_code == 403


def test_a_change_of_an_older_revision_is_a_conflict(seen: ServedOrganisation) -> None:
    view = saved(seen, "bob", "shared", published=True)
    assert change(seen, "bob", view, data={"sort": "name"}).json()["revision"] == 2
    late = change(seen, "carol", view, data={"sort": "id"})
    assert late.status_code == 409
    assert late.json()["view"]["data"] == {"sort": "name"}
    assert "read it again" in late.json()["error"]
    assert change(seen, "carol", late.json()["view"], data={"sort": "id"}).status_code == 200


def test_nothing_of_another_team_is_seen(seen: ServedOrganisation) -> None:
    view = saved(seen, "bob", "zebra view", published=True)
    query = {"project": "team", "entity": "vision"}
    hidden = seen.ask("otto", "GET", "/api/v1/views", params=query)
    missing = seen.ask("otto", "GET", "/api/v1/views", params={**query, "project": "no-such"})
    assert hidden.status_code == missing.status_code == 404
    assert hidden.text.replace("team", "") == missing.text.replace("no-such", "")
    assert seen.ask("otto", "POST", "/api/v1/views", json={**NEW, "name": "x"}).status_code == 404
    assert change(seen, "otto", view, name="x").status_code == 404
    for method, path, body in (("GET", "?project=team", None), ("POST", "", {**NEW, "name": "x"})):
        assert seen.ask(None, method, f"/api/v1/views{path}", json=body).status_code == 401


def test_service_accounts_have_no_views_of_their_own(seen: ServedOrganisation) -> None:
    response = seen.ask("ci", "POST", "/api/v1/views", json={**NEW, "name": "x"})
    assert (response.status_code, list(response.json()["fields"])) == (422, ["published"])
    assert saved(seen, "ci", "by ci", published=True)["owner"] is None


def test_kinds_are_listed_apart(seen: ServedOrganisation) -> None:
    saved(seen, "bob", "charts", kind="workspace")
    assert "charts" in names(seen, "bob", kind="workspace")
    assert "charts" not in names(seen, "bob", kind="runs")


@pytest.mark.parametrize(
    ("how", "field"),
    [
        ({"kind": "colour"}, "kind"),
        ({"name": ""}, "name"),
        ({"name": "x" * 129}, "name"),
        ({"data": []}, "data"),
        ({"data": {"x": "y" * saved_views.MAX_DATA_BYTES}}, "data"),
        ({"data": {"x": "\ud800"}}, "data"),
        ({"data": {"x": float("nan")}}, "data"),
    ],
)
def test_wrong_views_name_the_field(seen: ServedOrganisation, how: dict[str, Any], field: str) -> None:
    body = json.dumps({**NEW, "name": "x", **how})
    sent = {"content-type": "application/json"}
    response = seen.ask("bob", "POST", "/api/v1/views", content=body, headers=sent)
    assert (response.status_code, list(response.json()["fields"])) == (422, [field])


def test_there_is_a_limit(seen: ServedOrganisation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_views, "MAX_VIEWS", len(names(seen, "carol", kind="workspace")) + 1)
    saved(seen, "carol", "one", kind="workspace")
    response = seen.ask("carol", "POST", "/api/v1/views", json={**NEW, "name": "two", "kind": "workspace"})
    for _ in range(5):
        if response.status_code == 409:
            break
        response = seen.ask(
            "carol", "POST", "/api/v1/views", json={**NEW, "name": "more", "kind": "workspace"}
        )
    assert (response.status_code, "delete one first" in response.text) == (409, True)


def test_a_local_server_has_none(tmp_path: Path) -> None:
    assert Client(tmp_path).get("/api/v1/views", params={"project": "digits"}).status_code == 404
