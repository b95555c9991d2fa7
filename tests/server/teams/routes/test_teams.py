"""`/teams`, over HTTP."""

from __future__ import annotations

import pytest

from runvitals.server.audit.storage.audit import CLI
from tests.server.accounts_server import AccountsServer


def test_an_administrator_creates_a_team(server: AccountsServer) -> None:
    body = {"name": "Vision-Lab", "display_name": "Vision Lab", "type": "academic", "company": "Example"}
    with server.client("olga") as olga:
        response = olga.post("teams", json=body)
    assert response.status_code == 201
    assert response.headers["location"] == "/api/v1/teams/vision-lab"
    team = response.json()
    assert {name: team[name] for name in ("name", "display_name", "type", "company")} == {
        "name": "vision-lab",
        "display_name": "Vision Lab",
        "type": "academic",
        "company": "Example",
    }
    assert {"team:update", "team:delete", "member:invite"} <= set(team["may"])
    mine = server.ask("olga", "GET", "teams")
    assert [(row["name"], row["role"], row["members"]) for row in mine["teams"]] == [
        ("vision-lab", "admin", 1)
    ]
    assert (mine["total"], mine["next"], mine["may"]) == (1, None, ["team:create"])
    assert server.actions()[-1] == "team.create"


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"name": "olga"}, 409, None),
        ({"name": "settings"}, 422, "name"),
        ({"name": "a b"}, 422, "name"),
        ({"name": "a", "type": "private"}, 422, "type"),
        ({"name": "a", "surprise": 1}, 422, "surprise"),
        ({}, 422, "name"),
    ],
)
def test_an_invalid_team_is_not_created(
    server: AccountsServer, body: dict[str, object], status: int, field: str | None
) -> None:
    response = server.ask("olga", "POST", "teams", status, json=body)
    assert (field is None) or list(response["fields"]) == [field]
    assert server.accounts.teams.all() == []


def test_only_administrators_create_teams_unless_members_may(server: AccountsServer) -> None:
    server.ask("ada", "POST", "teams", 403, json={"name": "vision"})
    server.ask(None, "POST", "teams", 401, json={"name": "vision"})
    server.accounts.settings.put({"team_creation": "members"}, CLI, server.clock())
    server.ask("ada", "POST", "teams", 201, json={"name": "vision"})


def test_a_team_without_an_account_of_it_shows_a_profile_only(vision: AccountsServer) -> None:
    assert vision.ask("mallory", "GET", "teams/vision")["may"] == ["team:profile"]
    vision.accounts.teams.update("vision", CLI, vision.clock(), hidden=True)
    with vision.client("mallory") as stranger:
        hidden = stranger.get("teams/vision")
        missing = stranger.get("teams/nobody")
    assert (hidden.status_code, missing.status_code) == (404, 404)
    assert hidden.json()["error"].replace("vision", "nobody") == missing.json()["error"]
    assert "team:read" in vision.ask("eve", "GET", "teams/vision")["may"]


def test_general_settings(vision: AccountsServer) -> None:
    changed = vision.ask("ada", "PATCH", "teams/vision", json={"display_name": "We see", "type": "academic"})
    assert (changed["display_name"], changed["type"]) == ("We see", "academic")
    renamed = vision.ask("ada", "PATCH", "teams/vision", 422, json={"name": "other"})
    assert renamed["fields"] == {"name": "the name of a team cannot be changed"}
    for name, status in (("bob", 403), ("eve", 403), ("mallory", 404), (None, 401)):
        vision.ask(name, "PATCH", "teams/vision", 404 if status == 404 else status, json={"type": "work"})
    long = vision.ask("olga", "PATCH", "teams/vision", 422, json={"display_name": " "})
    assert list(long["fields"]) == ["display_name"]


def test_settings_say_what_may_be_changed_and_what_locks_it(vision: AccountsServer) -> None:
    settings = vision.ask("ada", "GET", "teams/vision/settings")["settings"]
    assert settings["name"] == {"value": "vision", "editable": False, "enforced_by": None}
    assert settings["hidden"] == {"value": False, "editable": False, "enforced_by": None}
    assert settings["type"]["editable"]
    vision.ask("bob", "GET", "teams/vision/settings", 403)
    vision.ask("mallory", "GET", "teams/vision/settings", 404)
    vision.ask("ada", "PATCH", "teams/vision/privacy", 403, json={"hidden": True})
    changed = vision.ask("olga", "PATCH", "teams/vision/privacy", json={"hidden": True})["settings"]
    assert changed["hidden"] == {"value": True, "editable": True, "enforced_by": None}
    vision.accounts.settings.put({"enforce_hidden": "off"}, CLI, vision.clock())
    locked = vision.ask("olga", "GET", "teams/vision/settings")["settings"]["hidden"]
    assert locked == {"value": False, "editable": False, "enforced_by": "organisation"}
    vision.ask("olga", "PATCH", "teams/vision/privacy", 409, json={"hidden": True})
    vision.ask("mallory", "GET", "teams/vision")  # shown again, because the organisation says so
    assert "team.update_privacy" in vision.actions()


def test_team_administrators_change_privacy_where_the_organisation_lets_them(vision: AccountsServer) -> None:
    vision.accounts.settings.put({"team_admins_edit_privacy": True}, CLI, vision.clock())
    vision.ask("ada", "PATCH", "teams/vision/privacy", json={"members_invite": True})
    assert "member:invite" in vision.ask("bob", "GET", "teams/vision")["may"]
    assert "member:invite" not in vision.ask("eve", "GET", "teams/vision")["may"]
    vision.ask("ada", "PATCH", "teams/vision/privacy", 422, json={"members_invite": "yes"})


def test_a_team_goes_to_the_trash_and_comes_back(vision: AccountsServer) -> None:
    vision.ask("ada", "DELETE", "teams/vision", 403, json={"confirm": "vision"})
    wrong = vision.ask("olga", "DELETE", "teams/vision", 422, json={"confirm": "visoin"})
    assert list(wrong["fields"]) == ["confirm"]
    with vision.client("olga", sudo=False) as olga:
        deleted = olga.request("DELETE", "teams/vision", json={"confirm": "vision"})
    assert (deleted.status_code, deleted.json()["sudo"]) == (428, True)
    gone = vision.ask("olga", "DELETE", "teams/vision", 202, json={"confirm": "vision"})
    assert gone["purged_ms"] - gone["deleted_ms"] == 30 * 86_400_000
    vision.ask("ada", "GET", "teams/vision", 404)
    assert vision.ask("ada", "GET", "teams")["teams"] == []
    vision.ask("olga", "GET", "teams/vision/members", 404)
    vision.ask("olga", "POST", "teams", 409, json={"name": "vision"})
    vision.ask("ada", "POST", "teams/vision/restore", 404)
    vision.ask("olga", "POST", "teams/vision/restore")
    vision.ask("olga", "POST", "teams/vision/restore", 409)
    assert "team:update" in vision.ask("ada", "GET", "teams/vision")["may"]
    assert vision.actions()[-2:] == ["team.delete", "team.restore"]


def test_the_page_of_a_team(vision: AccountsServer) -> None:
    links = [{"label": "Papers", "url": "https://example.org/papers"}]
    vision.ask("ada", "PATCH", "teams/vision/profile", json={"intro": "# We see", "links": links})
    shown = vision.ask("eve", "GET", "teams/vision/profile")
    assert (shown["intro"], shown["links"]) == ("# We see", links)
    assert [(row["name"], row["role"]) for row in shown["members"]] == [
        ("ada", "admin"),
        ("bob", "member"),
        ("eve", "viewer"),
    ]
    assert "members" not in vision.ask("mallory", "GET", "teams/vision/profile")
    wrong = {"links": [{"url": "javascript:alert(1)"}]}
    response = vision.ask("ada", "PATCH", "teams/vision/profile", 422, json=wrong)
    assert list(response["fields"]) == ["links[0].url"]
    vision.ask("bob", "PATCH", "teams/vision/profile", 403, json={"intro": ""})


def test_lists_come_in_pages(server: AccountsServer) -> None:
    for name in ("a1", "b2", "c3"):
        server.ask("olga", "POST", "teams", 201, json={"name": name})
    first = server.ask("olga", "GET", "teams?limit=2")
    assert ([row["name"] for row in first["teams"]], first["total"]) == (["a1", "b2"], 3)
    second = server.ask("olga", "GET", f"teams?limit=2&after={first['next']}")
    assert ([row["name"] for row in second["teams"]], second["next"]) == (["c3"], None)
    server.ask("olga", "GET", "teams?limit=0", 422)


def test_the_name_of_a_team_does_not_change_to_anything(vision: AccountsServer) -> None:
    for name in ('"other"', "null", '{"\\ud800": 1}', "[]"):
        response = vision.ask("ada", "PATCH", "teams/vision", 422, content=f'{{"name": {name}}}')
        assert list(response["fields"]) == ["name"]


def test_one_call_returns_the_page_of_a_team_or_user(vision: AccountsServer) -> None:
    for name, path in (("vision", "teams/vision/profile"), ("ada", "users/ada")):
        assert vision.ask("ada", "GET", f"entities/{name}") == vision.ask("ada", "GET", path)
    assert vision.ask("ada", "GET", "entities/ada")["kind"] == "user"


def test_a_hidden_team_cannot_be_told_from_a_missing_one(vision: AccountsServer) -> None:
    vision.accounts.teams.update("vision", CLI, vision.clock(), hidden=True)
    with vision.client("mallory") as mallory:
        hidden, missing = mallory.get("entities/vision"), mallory.get("entities/nobody")
    assert (hidden.status_code, missing.status_code) == (404, 404)
    assert missing.json()["error"] == "there is no team or user 'nobody'"
    assert hidden.text.replace("vision", "nobody") == missing.text
    assert vision.ask("ada", "GET", "entities/vision")["kind"] == "team"
    vision.ask(None, "GET", "entities/vision", 401)
    vision.ask(None, "GET", "entities/nobody", 401)
