"""`/organisation/roles`, over HTTP."""

from __future__ import annotations

import json

from runvitals.server.audit.storage.audit import CLI
from tests.server.accounts_server import T0, AccountsServer

ROLES = "organisation/roles"
LABELLER = {"name": "Labeller", "base": "viewer", "permissions": ["run:update"], "description": "Labels."}


def test_a_custom_role_from_its_creation_to_its_deletion(vision: AccountsServer) -> None:
    created = vision.ask("olga", "POST", ROLES, 201, json=LABELLER)
    assert (created["name"], created["permissions"], created["people"]) == ("Labeller", ["run:update"], 0)
    vision.ask("olga", "POST", ROLES, 409, json={**LABELLER, "name": "labeller"})
    vision.accounts.members.set_role("vision", "eve", "Labeller", CLI, T0)
    changed = vision.ask(
        "olga", "PATCH", f"{ROLES}/Labeller", json={"name": "Editor", "permissions": ["report:create"]}
    )
    assert (changed["name"], changed["permissions"], changed["people"], changed["teams"]) == (
        "Editor",
        ["report:create"],
        1,
        1,
    )
    listed = vision.ask("eve", "GET", ROLES)
    assert [row["name"] for row in listed["roles"]] == ["Editor"]
    assert listed["may"] == []
    assert "member:update_role" not in listed["permissions"]
    assert vision.ask("olga", "DELETE", f"{ROLES}/Editor") == {"people": 1}
    member = vision.accounts.members.get("vision", "eve")
    assert (member.role, member.custom_role) == ("viewer", None)
    assert vision.actions()[-2:] == ["role.delete", "team.member_role"]
    vision.ask("olga", "DELETE", f"{ROLES}/Editor", 404)


def test_what_a_role_cannot_be(vision: AccountsServer) -> None:
    for change, field in (
        ({"name": "admin"}, "name"),
        ({"base": "admin"}, "base"),
        ({"permissions": ["member:update_role"]}, "permissions"),
        ({"permissions": ["fly"]}, "permissions"),
        ({"description": "x" * 501}, "description"),
    ):
        response = vision.ask("olga", "POST", ROLES, 422, json={**LABELLER, **change})
        assert list(response["fields"]) == [field]
    vision.ask("olga", "POST", ROLES, 201, json=LABELLER)
    vision.ask("olga", "PATCH", f"{ROLES}/Labeller", 422, json={"base": "member"})
    vision.ask("ada", "POST", ROLES, 403, json=LABELLER)
    vision.ask(None, "GET", ROLES, 401)


def test_an_invitation_with_a_role_ends_with_the_role(vision: AccountsServer) -> None:
    vision.ask("olga", "POST", ROLES, 201, json=LABELLER)
    invited = {"people": ["mallory"], "custom_role": "Labeller"}
    (result,) = vision.ask("ada", "POST", "teams/vision/invitations", json=invited)["results"]
    vision.ask("olga", "DELETE", f"{ROLES}/Labeller")
    token = result["url"].partition("#")[2]
    vision.ask("mallory", "POST", "invitations/accept", 410, json={"token": token})


def test_the_name_of_a_role_fits_into_an_address(vision: AccountsServer) -> None:
    path = f"{ROLES}/%E8%A9%95%E4%BE%A1"
    with vision.client("olga") as olga:
        created = olga.post(ROLES, json={**LABELLER, "name": "\u8a55\u4fa1"})
        assert created.headers["location"] == f"/api/v1/{path}"
        assert olga.delete(path).status_code == 200
    for name in ("a\r\nset-cookie: a=b", "a\0b", "\ud800", "a/b", "..", "a\u202eb"):
        response = vision.ask("olga", "POST", ROLES, 422, content=json.dumps({**LABELLER, "name": name}))
        assert list(response["fields"]) == ["name"]
