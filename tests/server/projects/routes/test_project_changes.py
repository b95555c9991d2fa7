"""Creating projects, changes of several fields at once, and projects that their team cannot read."""

from __future__ import annotations

import pytest

from runvitals.server.audit.storage.audit import CLI
from tests.server.accounts_server import T0, AccountsServer
from tests.server.projects.routes.conftest import add_run

DIGITS = "entities/vision/projects/digits"


def test_all_fields_change_or_none(digits: AccountsServer) -> None:
    add_run(digits, "letter", "letters", "ada")
    before = digits.ask("bob", "GET", DIGITS)
    recorded = digits.actions()
    changes = {"description": "new", "visibility": "public", "owner": "ada", "name": "letters"}
    digits.ask("ada", "PATCH", DIGITS, 409, json=changes)
    digits.ask("ada", "PATCH", DIGITS, 422, json={"description": "x" * 501, "visibility": "public"})
    digits.ask("ada", "PATCH", DIGITS, 422, json={"description": "new", "owner": "mallory"})
    assert digits.ask("bob", "GET", DIGITS) == before
    assert digits.actions() == recorded
    changed = digits.ask("ada", "PATCH", DIGITS, json={**changes, "name": "numbers"})
    assert [changed[field] for field in ("name", "description", "visibility", "owner")] == [
        "numbers",
        "new",
        "public",
        "ada",
    ]
    assert digits.actions()[len(recorded) :] == ["project.set_visibility", "project.update"]


def test_each_wrong_field_is_named(digits: AccountsServer) -> None:
    wrong = {"name": "ok", "description": "x" * 501}
    assert list(digits.ask("ada", "PATCH", DIGITS, 422, json=wrong)["fields"]) == ["description"]


def test_an_overview_is_shown_as_html(digits: AccountsServer) -> None:
    text = "# Digits\n<script>alert(1)</script>"
    shown = digits.ask("ada", "PATCH", DIGITS, json={"overview": text})
    assert shown["overview"] == text
    assert shown["overview_html"].startswith("<h2>Digits</h2>")
    assert "<script" not in shown["overview_html"]


@pytest.mark.parametrize("level", ["private", "restricted"])
def test_administrators_open_a_project_that_they_cannot_read(digits: AccountsServer, level: str) -> None:
    digits.ask("bob", "PATCH", DIGITS, json={"visibility": level, "overview": "A secret"})
    digits.ask("ada", "GET", DIGITS, 404)
    for change in ({"overview": "mine"}, {"name": "mine", "visibility": "team"}):
        digits.ask("ada", "PATCH", DIGITS, 404, json=change)
    assert "overview" not in digits.ask("ada", "PATCH", DIGITS, json={})
    for name in ("eve", "mallory"):
        digits.ask(name, "PATCH", DIGITS, 404, json={"visibility": "team"})
    assert digits.ask("bob", "GET", DIGITS)["visibility"] == level
    opened = digits.ask("ada", "PATCH", DIGITS, json={"visibility": "team"})
    assert (opened["visibility"], opened["overview"]) == ("team", "A secret")
    assert digits.ask("ada", "GET", DIGITS)["owner"] == "bob"


def test_an_administrator_of_the_organisation_opens_it_without_reading_it(digits: AccountsServer) -> None:
    digits.ask("bob", "PATCH", DIGITS, json={"visibility": "private", "overview": "A secret"})
    opened = digits.ask("olga", "PATCH", DIGITS, json={"visibility": "team"})
    assert opened == {"name": "digits", "entity": "vision", "visibility": "team", "owner": "bob"}
    digits.ask("olga", "GET", DIGITS, 404)
    digits.ask("eve", "GET", DIGITS)


def test_administrators_act_as_the_owner_of_a_private_project_without_one(digits: AccountsServer) -> None:
    digits.ask("bob", "PATCH", DIGITS, json={"visibility": "private"})
    digits.ask("ada", "GET", DIGITS, 404)
    digits.accounts.members.remove("vision", "bob", CLI, T0)
    assert digits.ask("ada", "GET", DIGITS)["runs"] == 2
    assert {run["id"] for run in digits.ask("ada", "GET", "runs")["runs"]} == {"run-ada", "run-bob"}
    digits.ask("eve", "GET", DIGITS, 404)
    assert digits.ask("eve", "GET", "runs")["runs"] == []
    assert digits.ask("ada", "PATCH", DIGITS, json={"owner": "eve"}) == {
        "name": "digits",
        "entity": "vision",
        "visibility": "private",
        "owner": "eve",
    }
    assert digits.ask("eve", "GET", DIGITS)["runs"] == 2
    digits.ask("ada", "GET", DIGITS, 404)


def test_an_empty_project_is_created(digits: AccountsServer) -> None:
    path = "entities/vision/projects"
    with digits.client("bob") as bob:
        response = bob.post(path, json={"name": "a b", "description": "New", "visibility": "restricted"})
    assert (response.status_code, response.headers["location"]) == (201, f"/api/v1/{path}/a%20b")
    assert [response.json()[field] for field in ("owner", "visibility", "runs")] == ["bob", "restricted", 0]
    digits.ask("ada", "GET", f"{path}/a b", 404)
    digits.ask("bob", "POST", path, 409, json={"name": "digits"})
    digits.ask("eve", "POST", path, 403, json={"name": "mine"})
    digits.ask("mallory", "POST", path, 404, json={"name": "mine"})
    digits.ask("bob", "POST", "entities/bob/projects", 422, json={"name": "x", "visibility": "restricted"})
    assert digits.ask("bob", "POST", "entities/bob/projects", 201, json={"name": "x"})["owner"] == "bob"
    add_run(digits, "first", "a b", "bob")
    assert digits.ask("bob", "GET", f"{path}/a b")["runs"] == 1


def test_projects_in_the_trash_are_listed_for_those_who_may_restore_them(digits: AccountsServer) -> None:
    path = "entities/vision/projects?deleted=true"
    assert digits.ask("ada", "GET", path)["projects"] == []
    digits.ask("ada", "DELETE", DIGITS, 202)
    (row,) = digits.ask("ada", "GET", path)["projects"]
    assert (row["name"], row["deleted_ms"]) == ("digits", digits.clock())
    assert digits.ask("ada", "GET", DIGITS)["purged_ms"] == digits.clock() + 30 * 86_400_000
    for name in ("eve", "bob", "mallory"):
        assert digits.ask(name, "GET", path)["projects"] == []


SWEEP = {"method": "random", "parameters": {"lr": {"min": 0.1, "max": 1}}}


@pytest.mark.parametrize(
    ("path", "field", "body"),
    [
        ("entities/vision/projects", "name", {}),
        ("views", "name", {"kind": "runs", "entity": "vision", "project": "digits", "data": {}}),
        (f"{DIGITS}/reports", "title", {}),
        (f"{DIGITS}/sweeps", "name", {"configuration": SWEEP}),
        ("account/api-keys", "name", {"scope": "read"}),
    ],
)
def test_no_new_name_passes_for_another(
    digits: AccountsServer, path: str, field: str, body: dict[str, object]
) -> None:
    for name in ("dig\u200bits", "\u202estigid", "dig\u00adits"):
        refused = digits.ask("ada", "POST", path, 422, json={**body, field: name})
        assert list(refused["fields"]) == [field]
    digits.ask("ada", "POST", path, 201, json={**body, field: "\u30ed\u30b0 \u2764\ufe0f"})


def test_an_older_project_with_hidden_characters_is_read_and_gets_another_name(
    digits: AccountsServer,
) -> None:
    add_run(digits, "old", "dig\u200bits", "ada")
    old = "entities/vision/projects/dig%E2%80%8Bits"
    assert digits.ask("ada", "GET", old)["runs"] == 1
    digits.ask("ada", "PATCH", DIGITS, 422, json={"name": "\u202edigits"})
    assert digits.ask("ada", "PATCH", old, json={"name": "plain"})["name"] == "plain"
